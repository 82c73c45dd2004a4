//! The fault engine through its public interface, one task at a time. Schedules are the targets of their checkers.

mod allocators;
#[path = "../host/mod.rs"]
mod host;
mod leaves;
mod model;
mod one_task;
