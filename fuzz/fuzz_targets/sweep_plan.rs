//! The plan of `pageset sweep`. One that is accepted has as many runs as it says, each once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_lab::fuzzing;

fuzz_target!(|text: &str| fuzzing::sweep_plan(text));
