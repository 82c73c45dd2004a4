//! Tests of the fault engine through its public interface, with one task at a time. Concurrent schedules are
//! in the test targets of loom and shuttle.

mod allocators;
#[path = "../host/mod.rs"]
mod host;
mod leaves;
mod model;
mod one_task;
