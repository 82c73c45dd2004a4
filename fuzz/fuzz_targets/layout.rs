//! A machine description in TOML.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_trace::fuzzing;

fuzz_target!(|text: &str| drop(fuzzing::layout(text)));
