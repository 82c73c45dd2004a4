//! Workloads: the benchmarks of the published tables, each as its definition says, over any [`Target`](crate::Target).
//!
//! A [`Workload`] is a value. [`Workload::plan`] makes it concrete for a number of CPUs: a [`Plan`] with one worker per
//! CPU, and the channels and locks between them. Whoever runs a plan gives each worker a
//! [`Target`](crate::Target) and calls its body.

mod anon_cow;
mod anon_rand;
mod ebizzy;
mod file;
mod hackbench;
mod kbuild;
mod lru_file;
mod malloc;
mod mapping;
mod net;
mod page_fault;
mod plan;
mod recorded;
mod service;
mod setup;

pub use plan::{Body, ChannelSpec, LockKind, Plan, Worker};
pub use recorded::{Played, Recorded};
pub use setup::{Generation, Parameter, PlanError, Settings, Setup, Topology};

/// A benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name on the command line, e.g. `page_fault1`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where its definition stands.
    pub source: &'static str,
    /// What one unit of the score is, e.g. "faults".
    pub unit: &'static str,
    /// How long it should run: before measuring begins, and measured, in milliseconds of its own time. Guess: a few of
    /// its cycles.
    pub duration_ms: (u64, u64),
    /// What can be set, with defaults.
    pub parameters: &'static [Parameter],
    /// Makes it concrete.
    build: fn(&Setup<'_>) -> Result<Plan, PlanError>,
}

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
        hackbench::HACKBENCH_PIPES,
        hackbench::HACKBENCH_SOCKETS,
        net::UDP_STREAM,
        net::TCP_STREAM,
        net::SCTP_STREAM,
        net::UNIX_STREAM,
        net::SOCKPERF_UDP,
        net::SOCKPERF_TCP,
        ebizzy::EBIZZY,
        service::PIGZ,
        service::OLTP,
    ];

    /// The workload called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|workload| workload.name == name)
    }

    /// The workers of a run, with what is between them.
    ///
    /// # Errors
    /// If a setting is unknown, or there are too few CPUs.
    pub fn plan(&self, setup: &Setup<'_>) -> Result<Plan, PlanError> {
        setup.settings.check(self)?;
        if setup.cpus == 0 || setup.cpus as usize > setup.topology.nodes_of_cpus.len() {
            return Err(PlanError::Cpus { wanted: setup.cpus, present: setup.topology.nodes_of_cpus.len() });
        }
        let settings = setup.settings.completed(self);
        (self.build)(&Setup { settings: &settings, ..*setup })
    }
}

/// Whether workers share their address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tasks {
    Processes,
    Threads,
}
