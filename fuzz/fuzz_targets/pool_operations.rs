//! Random programs of the whole public surface of a pool, beside a model: `pool/pageset/tests/program`.
#![no_main]

#[path = "../../pool/pageset/tests/program/mod.rs"]
mod program;

use program::Program;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let program = Program::decode(bytes);
    // For whoever looks at a failure: the program in words.
    if std::env::var_os("PAGESET_FUZZ_PRINT").is_some() {
        eprintln!("{program:?}");
    }
    program.run();
});
