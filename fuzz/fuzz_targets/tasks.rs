//! Names of tasks in a description.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_trace::fuzzing;

fuzz_target!(|text: &str| drop(fuzzing::tasks(text)));
