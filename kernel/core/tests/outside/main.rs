//! Tests of the core through its public interface. Tests that need another heap or another thread scheduler
//! are separate test targets.

mod add;
mod block_of;
mod contiguous;
mod decisions;
mod errors;
mod exact;
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
