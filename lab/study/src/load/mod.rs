//! Workloads: the benchmarks of the published tables, written from their definitions. A workload runs on any
//! [`Target`](crate::Target).
//!
//! A [`Workload`] is a value that describes one benchmark. [`Workload::plan`] makes a [`Plan`] for a number
//! of CPUs: one worker per CPU, and the channels and locks between workers. To run a plan, give each worker a
//! [`Target`](crate::Target) and call its body.
//!
//! This file lists all benchmarks. Most files of the folder `load` have one benchmark, or a few similar
//! benchmarks. Some files are parts of several benchmarks: `mapping` (an address space), `file` (a file in
//! the page cache), `page_cache` (files that fill memory) and `net` (sockets). All benchmarks use `workload`,
//! `setup` and `plan`, and `start` can delay the start of their programs. `recorded` makes a plan from a
//! recording.

mod anon_cow;
mod anon_rand;
mod ebizzy;
mod file;
mod fsmark;
mod hackbench;
mod handoff;
mod kbuild;
mod lru_file;
mod malloc;
mod mapping;
mod mass_exit;
mod net;
mod page_cache;
mod page_fault;
pub(crate) mod plan;
mod recorded;
mod service;
pub(crate) mod setup;
mod start;
mod stress_vm;
mod workload;

pub use plan::{Body, ChannelSpec, LockKind, Plan, Worker};
pub use recorded::{Played, Recorded};
pub use setup::{Generation, Parameter, PlanError, Settings, Setup, Topology};
pub use start::START_SPREAD_US;
pub use workload::Workload;

impl Workload {
    /// All workloads.
    pub const ALL: &'static [Self] = &[
        page_fault::PAGE_FAULT1,
        page_fault::PAGE_FAULT1_THREADS,
        page_fault::PAGE_FAULT2,
        page_fault::PAGE_FAULT2_THREADS,
        page_fault::PAGE_FAULT3,
        page_fault::PAGE_FAULT3_THREADS,
        malloc::MALLOC1,
        malloc::MALLOC1_THREADS,
        malloc::MALLOC2,
        file::READ1,
        file::WRITE1,
        anon_cow::ANON_COW_SEQ,
        anon_rand::ANON_R_RAND,
        anon_rand::ANON_R_RAND_MT,
        lru_file::LRU_FILE_READ,
        lru_file::LRU_FILE_READ_RAND,
        kbuild::KBUILD,
        stress_vm::STRESS_VM,
        hackbench::HACKBENCH_PIPES,
        hackbench::HACKBENCH_SOCKETS,
        fsmark::FSMARK,
        net::UDP_STREAM,
        net::TCP_STREAM,
        net::SCTP_STREAM,
        net::UNIX_STREAM,
        net::SOCKPERF_UDP,
        net::SOCKPERF_TCP,
        ebizzy::EBIZZY,
        service::PIGZ,
        service::OLTP,
        handoff::PRODUCER_CONSUMER,
        mass_exit::MASS_EXIT,
        handoff::PURGER,
    ];

    /// Returns the workload called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|workload| workload.name == name)
    }
}
