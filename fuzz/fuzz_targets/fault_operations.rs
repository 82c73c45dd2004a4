//! Programs of everything that tasks can do with address spaces, against the model of the fault engine's tests.
#![no_main]

#[path = "../../crates/fault/tests/host/mod.rs"]
mod host;
#[path = "../../crates/fault/tests/outside/model/operation.rs"]
mod operation;
#[path = "../../crates/fault/tests/outside/model/reference.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reference::play(&operation::Program::from_bytes(bytes)));
