//! The file of `pageset reproduce --fit`, behind the heading that each has.
#![no_main]

use pageset_reproduce::fuzzing;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    fuzzing::fitted(text);
    fuzzing::fitted(&format!("{}{text}", fuzzing::FITTED_HEADING));
});
