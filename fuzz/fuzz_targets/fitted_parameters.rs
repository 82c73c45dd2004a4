//! The file of `pageset reproduce --fit`, behind the heading that each has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_lab::fuzzing;

fuzz_target!(|text: &str| {
    fuzzing::fitted(text);
    fuzzing::fitted(&format!("{}{text}", fuzzing::FITTED_HEADING));
});
