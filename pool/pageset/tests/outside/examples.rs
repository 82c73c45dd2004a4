//! Runs the example programs that the guide shows.
#![cfg(not(miri))]

#[path = "../../examples/page_cache.rs"]
mod page_cache;
#[path = "../../examples/ring_reader.rs"]
mod ring_reader;

#[test]
fn the_page_cache_loses_no_update() {
    page_cache::main().unwrap();
}

#[test]
fn the_ring_reader_reads_what_the_file_has() {
    ring_reader::main().unwrap();
}
