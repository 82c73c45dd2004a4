//! The plan of `pageset sweep`. One that is accepted has as many runs as it says, each once.
#![no_main]

use pageset_reproduce::fuzzing;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| fuzzing::sweep_plan(text));
