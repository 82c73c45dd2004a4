//! The page fault test on this machine: through the fault engine, and through the kernel.
//!
//! `shape` describes the memory that threads touch, `ahead` describes the work before the touches, and
//! `result` describes the result. `threads` runs the phases. `engine` is the fault engine, on the memory of
//! `arena`. `kernel` runs the test on the operating system's page faults.

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
