//! Copies or clears huge pages and then writes them, in a model of caches and on this machine.
//!
//! `caches` models the caches and `chip` has the inputs of the model. `workload` runs on this machine, and
//! `counters` counts the workload's instructions and cycles.

mod caches;
mod chip;
mod counters;
mod workload;

pub use caches::{PARTS, Played, play};
pub use chip::{Chip, PageOperation, Walk};
pub use workload::{AnonCow, Measured};
