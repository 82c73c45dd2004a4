//! The kernel's descriptions of its events.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_record::fuzzing;

fuzz_target!(|text: &str| drop(fuzzing::event_format(text)));
