//! Pages of the kernel's rings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_record::fuzzing;

fuzz_target!(|bytes: &[u8]| assert!(fuzzing::ring_page(bytes) <= bytes.len()));
