//! The page fault test on this machine: through the fault engine, and through the kernel.
//!
//! `shape` describes the memory that is touched, `ahead` the work before that, and `result` the result.
//! `threads` runs the phases. `engine` is the fault engine, on the memory of `arena`. `kernel` is the
//! operating system.

mod ahead;
mod arena;
mod engine;
mod kernel;
mod result;
mod shape;
mod threads;

pub use ahead::Ahead;
pub use engine::{Zero, run as run_engine, run_clear};
pub use kernel::run as run_kernel;
pub use result::{Run, Series};
pub use shape::{RUN_PAGES, Regions, Shape};
