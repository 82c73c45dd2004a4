//! Copying or clearing huge pages and then writing them, in a model of caches and on this machine.
//!
//! `caches` models the caches and `chip` has the inputs of the model. `workload` runs on this machine, and
//! `counters` counts its instructions and cycles.

mod caches;
mod chip;
mod counters;
mod workload;

pub use caches::{PARTS, Played, play};
pub use chip::{Act, Chip, Walk};
pub use workload::{AnonCow, Measured};
