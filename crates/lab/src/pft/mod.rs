//! The page fault test: through the fault engine on threads or in virtual time, and through the kernel.
//!
//! `shape` says what is touched, `test` is what is asked for, `result` what was found. On this machine: `threads` runs the
//! phases, `engine` is the fault engine over the memory of `arena`, `kernel` the operating system. In virtual time:
//! `virtual_run` over `virtual_world`.

mod arena;
mod engine;
mod kernel;
mod result;
mod shape;
mod test;
mod threads;
mod virtual_run;
mod virtual_world;

pub use engine::Zero;
pub use result::{Run, Series};
pub use shape::{Regions, Shape};
pub use test::{Contestant, PftSpec, Test};
pub use virtual_run::{AreaCache, VirtualSpec, run as run_virtual};
pub use virtual_world::RssLine;
