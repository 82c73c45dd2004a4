//! The recorder's side file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_trace::fuzzing;

fuzz_target!(|text: &str| drop(fuzzing::side_file(text)));
