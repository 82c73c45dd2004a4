//! Measures the costs of single operations on this machine, writes these costs to a machine file for
//! simulations, and checks a machine file.
//!
//! `shape` asks the system for the numbers of CPUs and nodes, and the sizes of caches and memory. `rig` runs
//! pieces of work on threads. `allocator`, `cores` and `lines` measure costs. `file` writes the machine file.
//! `check` compares a simulation of this machine with the machine itself.

mod allocator;
mod check;
mod cores;
mod file;
mod lines;
mod rig;
mod shape;

use anyhow::Result;

pub use check::{Measured, compare};
use shape::Shape;

/// Measures this machine, and returns the text of a machine file for simulations. The measurement takes some
/// ten seconds. During the measurement, the machine should be idle.
///
/// # Errors
///
/// Fails if the system gives no threads or memory.
pub fn measure() -> Result<String> {
    file::measured(&Shape::of_this_machine())
}
