//! A study of `pageset reproduce`. One that is accepted has tables.
#![no_main]

use pageset_reproduce::fuzzing;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| fuzzing::study(text));
