//! Programs of everything that tasks can do with address spaces, against the model of the fault engine's
//! tests.
#![no_main]

#[path = "../../kernel/fault/tests/host/mod.rs"]
mod host;
#[path = "../../kernel/fault/tests/outside/model/operation.rs"]
mod operation;
#[path = "../../kernel/fault/tests/outside/model/reference.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reference::play(&operation::Program::from_bytes(bytes)));
