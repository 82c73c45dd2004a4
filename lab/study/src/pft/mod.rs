//! The page fault test. The faults are handled by `pageset-fault`, on threads or in virtual time, or by this
//! machine's kernel.
//!
//! `page_fault_test` describes a test and runs it. [`pageset_measure::pft`] runs a test on this machine.
//! `virtual_run` runs a test in virtual time, and `virtual_world` connects the fault engine with the
//! simulator.

mod page_fault_test;
mod virtual_run;
mod virtual_world;

pub use page_fault_test::{FaultHandler, PftSpec, Test};
pub use virtual_run::{AreaCache, VirtualSpec, run as run_virtual};
pub use virtual_world::RssLine;
