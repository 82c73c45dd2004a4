//! Tests of [`Amount`]: progress begins near nothing, grows with each block, and ends at the total.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use crate::bundled::bytes;
use pageset_trace::{Amount, OpenOptions, TraceReader};

fn open(bytes: Vec<u8>) -> Box<dyn TraceReader> {
    OpenOptions::new().open_bytes(Path::new("recording"), bytes).unwrap()
}

/// Reads a recording. Returns its amount, and how much was done after each block.
fn read(mut reader: Box<dyn TraceReader>) -> (Amount, Vec<u64>) {
    let (amount, mut block) = (reader.amount(), Vec::new());
    let (mut events, mut done) = (0, Vec::new());
    while reader.read_block(&mut block).unwrap() > 0 {
        events += block.len() as u64;
        done.push(amount.done(events));
    }
    done.push(amount.done(events));
    (amount, done)
}

/// A text of ftrace with so many events that a reader cannot read all of them ahead.
fn text() -> Vec<u8> {
    let mut text = "# tracer: nop\n#\n".to_owned();
    for number in 0_u32..400_000 {
        let pfn = number.wrapping_mul(2_654_435_761) >> 8;
        writeln!(text, "  load-7 [000] .... 1.{number:06}: mm_page_free: page=0x0 pfn=0x{pfn:x} order=0")
            .unwrap();
    }
    text.into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn of_text_bytes_of_the_file_are_counted_while_it_is_read() {
    let text = text();
    for file in [gzip(&text), zstd::encode_all(text.as_slice(), 1).unwrap(), text] {
        let total = file.len() as u64;
        let (amount, done) = read(open(file));
        assert_eq!((amount.unit(), amount.total()), ("bytes", Some(total)));
        assert!(done[0] < total, "a block is not all of the recording");
        assert!(done.is_sorted());
        assert_eq!(done.last(), Some(&total));
    }
}

#[test]
fn of_binary_files_the_bytes_with_events_are_counted() {
    for name in ["formats/perf.data.xz", "formats/trace-cmd-6.dat.xz", "formats/trace-cmd-7.dat"] {
        let file = bytes(name);
        let length = file.len() as u64;
        let reader = open(file);
        assert_eq!(reader.amount().done(0), 0, "{name}: no event was read");
        let (amount, done) = read(reader);
        assert_eq!(amount.unit(), "bytes", "{name}");
        assert!(name.ends_with(".dat") || amount.total().unwrap() < length, "{name}");
        assert_eq!(done.last().copied(), amount.total(), "{name}");
    }
}

#[test]
fn a_pgtrace_knows_its_number_of_events() {
    let (amount, done) = read(open(bytes("traces/k61_2c_tcp.pgtrace")));
    assert_eq!(amount.unit(), "events");
    assert_eq!(done.last().copied(), amount.total());
}

#[test]
fn a_search_for_ticks_that_reads_a_text_ahead_reports_progress() {
    let mut reader = open(text());
    let (amount, mut done) = (reader.amount(), Vec::new());
    assert!(!reader.has_ticks(&mut || done.push(amount.done(0))).unwrap());
    assert!(done.len() > 3 && done.is_sorted() && Some(done[0]) < amount.total(), "{done:?}");
    assert_eq!(done.last().copied(), amount.total());
}
