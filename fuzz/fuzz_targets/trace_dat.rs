//! Files of `trace-cmd record`, of either version.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_trace::{Recovery, Strictness, fuzzing};

fuzz_target!(|data: &[u8]| {
    // Starts as this format does, so that every input reaches its parser.
    let mut bytes = b"\x17\x08\x44tracing".to_vec();
    bytes.extend_from_slice(data);
    drop(fuzzing::trace(&bytes, Strictness::Strict, Recovery::Refuse));
    drop(fuzzing::trace(&bytes, Strictness::Lenient, Recovery::UpToDamage));
});
