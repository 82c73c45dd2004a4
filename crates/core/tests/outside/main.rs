//! The core through its public interface. What needs another allocator of memory or another scheduler of threads is a
//! test target of its own.

mod add;
mod block_of;
mod decisions;
mod errors;
mod examples;
#[path = "../family/mod.rs"]
mod family;
mod host;
mod interrupts;
mod invariants;
mod log;
mod model;
mod reviewers;
mod slices;
mod split;
mod statics;
mod steady;
