//! To be written.
#![no_main]

libfuzzer_sys::fuzz_target!(|_program: &[u8]| {});
