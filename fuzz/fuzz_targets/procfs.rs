//! The texts below `/proc`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_trace::fuzzing;

fuzz_target!(|text: &str| fuzzing::procfs(text));
