//! Measures the CPU time that a zone visit costs this machine's kernel.
//!
//! A thread maps memory, touches each page and unmaps it, again and again: `fault_loop`. Under the smallest
//! limit of page sets, nearly every page comes from the zone and goes back to the zone. Under the largest
//! limit, hardly any page comes from the zone or goes back to the zone. `measure` runs the loop under both
//! limits, and divides the difference of the times by the difference of the numbers of visits. `store` keeps
//! the result for later recordings.

mod fault_loop;
mod measure;
mod store;

pub use fault_loop::FaultLoop;
pub use measure::{Measuring, Work, measure};
pub use store::{date, keep, kept, path};
