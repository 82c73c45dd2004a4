//! The file of rows of `pageset sweep`. No whole line is ever cut off, and rows are read as they are written.
#![no_main]

use pageset_reproduce::fuzzing;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::sweep_rows(bytes);
    // Behind a row of ours, so that every input reaches the end of a file.
    let row: &[u8] = br#"{"key":"0123456789abcdef0123456789abcdef","spec":{"machine":"m","workload":"w","policy":"p","cpus":null,"batch":null,"high":null,"seed":1,"warmup_ms":null,"duration_ms":null,"settings":{}},"result":{"score":0.1}}"#;
    fuzzing::sweep_rows(&[row, b"\n", bytes].concat());
});
