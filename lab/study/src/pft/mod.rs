//! The page fault test: through the fault engine on threads or in virtual time, and through the kernel.
//!
//! `page_fault_test` is the request and its run. On this machine [`pageset_measure::pft`] runs it; in virtual
//! time `virtual_run` does, over `virtual_world`.

mod page_fault_test;
mod virtual_run;
mod virtual_world;

pub use page_fault_test::{FaultHandler, PftSpec, Test};
pub use virtual_run::{AreaCache, VirtualSpec, run as run_virtual};
pub use virtual_world::RssLine;
