//! Programs that copy or clear huge pages and then write them: on models of caches, and on this machine.
//!
//! `caches` models the caches and `chip` has the inputs of the model. `workload` is the load on this machine,
//! and `counters` counts its instructions and cycles.

mod caches;
mod chip;
mod counters;
mod workload;

pub use caches::{PARTS, Played, play};
pub use chip::{Act, Chip, Walk};
pub use workload::{AnonCow, Measured};
