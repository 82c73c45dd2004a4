//! Runs a workload on threads of this machine, with `pageset-core` and real locks. Each thread is pinned to
//! its own CPU.
//!
//! The same workload also runs on virtual CPUs, so a comparison of both results shows how exact the
//! simulation is. Each frame has real memory, so clearing and copying take as long as this machine needs.

mod channel;
mod memory;
mod spin_lock;
mod target;

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use pageset_core::{
    Config, ConfigError, Counters, NodeId, PageAllocator, Platform, Policy, Tables, Violation, ZoneConfig,
    ZoneKind,
};
use pageset_measure::host::{pin, usable_cpus};
use thiserror::Error;

use crate::load::plan::Plan;
use channel::Channel;
use memory::Memory;
use spin_lock::SpinLock;
use target::ThreadTarget;

/// Options of a run on threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadOptions {
    /// The allocator's policy.
    pub policy: Policy,
    /// Number of pages of memory. The operating system provides memory for a page when a thread touches the
    /// page.
    pub pages: u64,
    /// Time before measuring begins.
    pub warm_up: Duration,
    /// Measured time.
    pub duration: Duration,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// The result of a run on threads. Repeated runs differ, unlike simulations with the same seed.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadOutcome {
    /// Units of work that the workers finished in the measured time.
    pub score: u64,
    /// The measured time.
    pub seconds: f64,
    /// The allocator's counters of the whole run, including warm-up and clean-up.
    pub counters: Counters,
    /// Number of requests that failed in the whole run.
    pub failures: u64,
    /// Whether every thread could be pinned to its CPU.
    pub pinned: bool,
}

impl ThreadOutcome {
    /// Units of work per second.
    #[must_use]
    pub fn score_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.score as f64 / self.seconds } else { 0.0 }
    }
}

/// The reason why a workload could not run on threads.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ThreadError {
    /// The plan has more workers than this machine has CPUs. With more workers than CPUs, threads would
    /// mostly spin.
    #[error("the workload needs {wanted} CPUs, but this machine lets the program use {present}")]
    Cpus {
        /// Number of workers in the plan.
        wanted: usize,
        /// Number of CPUs of this machine.
        present: usize,
    },
    /// The allocator cannot be built for the number of pages that the options ask for.
    #[error("the allocator cannot use {pages} pages: {error}")]
    Allocator {
        /// Number of pages that the options ask for.
        pages: u64,
        /// The reason of the allocator's refusal.
        error: ConfigError,
    },
    /// The allocator lost a frame, or handed out a frame twice.
    #[error("the allocator's state is wrong after the run, which is a bug: {0}")]
    Violation(Violation),
    /// The workload did not give back all blocks, or gave some blocks back twice.
    #[error("{left} pages are left after the run and {refused} frees were refused, which is a bug")]
    Unbalanced {
        /// Number of pages that are still in use.
        left: u64,
        /// Number of frees that the allocator refused.
        refused: u64,
    },
}

/// The platform of the allocator on threads: real locks, and a sink that drops events.
#[derive(Clone, Copy, Debug, Default)]
struct Threads;

impl Platform for Threads {
    type RawLock = parking_lot::RawMutex;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

type Allocator = PageAllocator<'static, Threads>;

/// State that all workers share.
#[derive(Debug)]
struct Shared {
    allocator: Allocator,
    memory: Memory,
    channels: Vec<Channel>,
    locks: Vec<SpinLock>,
}

/// The counts that one worker keeps during a run.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    score: u64,
    failures: u64,
    refused_frees: u64,
}

/// Runs a plan on this machine's CPUs.
///
/// # Errors
/// Fails if there are fewer CPUs than workers, if the memory cannot be used, or if the run shows a bug.
pub fn run_on_threads(plan: Plan, options: &ThreadOptions) -> Result<ThreadOutcome, ThreadError> {
    let cpus = usable_cpus();
    if plan.workers.len() > cpus.len() {
        return Err(ThreadError::Cpus { wanted: plan.workers.len(), present: cpus.len() });
    }
    let shared = Arc::new(Shared {
        allocator: allocator(&plan, options)?,
        memory: Memory::new(options.pages),
        channels: plan.channels.iter().map(Channel::new).collect(),
        locks: plan.locks.iter().map(|_| SpinLock::default()).collect(),
    });
    let start = Barrier::new(plan.workers.len());
    let (tallies, pinned) = std::thread::scope(|scope| {
        let threads: Vec<_> = plan
            .workers
            .into_iter()
            .zip(cpus)
            .map(|(worker, cpu)| {
                let (shared, start) = (&shared, &start);
                scope.spawn(move || {
                    let pinned = pin(cpu);
                    start.wait();
                    let mut target = ThreadTarget::new(shared, worker.cpu, options, Instant::now());
                    (worker.body)(&mut target);
                    (target.tally(), pinned)
                })
            })
            .collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results.unzip::<_, _, Vec<_>, Vec<_>>()
    });
    let sum = |part: fn(&Tally) -> u64| tallies.iter().map(part).sum();
    let census = shared.allocator.validate().map_err(ThreadError::Violation)?;
    let (left, refused) = (census.allocated, sum(|tally| tally.refused_frees));
    if left > 0 || refused > 0 {
        return Err(ThreadError::Unbalanced { left, refused });
    }
    Ok(ThreadOutcome {
        score: sum(|tally| tally.score),
        seconds: options.duration.as_secs_f64(),
        counters: shared.allocator.counters(),
        failures: sum(|tally| tally.failures),
        pinned: pinned.iter().all(|pinned| *pinned),
    })
}

/// Makes an allocator of one zone on one node, for the CPUs that the plan names.
fn allocator(plan: &Plan, options: &ThreadOptions) -> Result<Allocator, ThreadError> {
    let cpus = plan.workers.iter().map(|worker| worker.cpu.index() + 1).max().unwrap_or(1);
    // The zone leaves out frame 0, as on a real machine.
    let span = 1..options.pages.saturating_add(1);
    let regions = [span.clone()];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span, regions: &regions }];
    let nodes = vec![NodeId(0); cpus];
    let config = Config::new(&zones, &nodes).with_policy(options.policy);
    let refused = |error| ThreadError::Allocator { pages: options.pages, error };
    let tables = Tables::on_heap(&config).map_err(refused)?;
    PageAllocator::new(Threads, &config, tables).map_err(refused)
}
