//! Tests the fault engine through its public interface, with one task at a time. The test targets of loom and
//! shuttle test concurrent tasks.

mod allocators;
#[path = "../host/mod.rs"]
mod host;
mod leaves;
mod model;
mod one_task;
