//! Tests the fault engine through its public interface. Except in `allocators`, one thread makes all calls.
//! The test targets of loom and shuttle test concurrent tasks.

mod allocators;
#[path = "../host/mod.rs"]
mod host;
mod leaves;
mod model;
mod one_task;
