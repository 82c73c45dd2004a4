//! The page fault test: through the fault engine on threads or in virtual time, and through the kernel.
//!
//! `shape` says what is touched, `ahead` what is done before, `page_fault_test` what is asked for, `result` what was found. On this machine: `threads` runs the
//! phases, `engine` is the fault engine over the memory of `arena`, `kernel` the operating system. In virtual time:
//! `virtual_run` over `virtual_world`.

mod ahead;
mod arena;
mod engine;
mod kernel;
mod page_fault_test;
mod result;
mod shape;
mod threads;
mod virtual_run;
mod virtual_world;

pub use ahead::Ahead;
pub use engine::Zero;
pub use page_fault_test::{Contestant, PftSpec, Test};
pub use result::{Run, Series};
pub use shape::{Regions, Shape};
pub use virtual_run::{AreaCache, VirtualSpec, run as run_virtual};
pub use virtual_world::RssLine;
