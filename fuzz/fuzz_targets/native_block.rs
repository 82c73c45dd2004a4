//! The payload of a native file's block, behind the checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_trace::fuzzing;

fuzz_target!(|input: (u32, &[u8])| {
    let (events, payload) = input;
    drop(fuzzing::block(payload, events % 70_000));
});
