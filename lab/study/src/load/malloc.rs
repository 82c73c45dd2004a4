//! will-it-scale `malloc1` and `malloc2`: allocate and free in a loop, 128 MiB or 1 KiB (spec fault.md §4.1).

use std::sync::Arc;

use pageset_core::MigrateType;

use super::mapping::{Backing, FAULT_NS, Mapping, UNMAP_NS};
use super::plan::{LockKind, Plan};
use super::setup::{Parameter, PlanError, Setup};
use super::workload::{Tasks, Workload};
use crate::lru::{self, Lru};
use crate::random_time::exponential_ns;
use crate::slab::{LIST_NS, Slabs};

const MMAP_NS: Parameter = Parameter {
    key: "mmap_ns",
    default: 1500,
    min: 1,
    meaning: "work of one mmap or munmap outside the allocator, in ns",
    source: "guess",
};
/// Size of the structure that describes a mapping (VMA). Guess: near the size of this structure in all
/// kernels of the published tables.
const VMA_BYTES: u32 = 192;
/// Number of page tables above the leaf table that one iteration needs. Source: spec fault.md §4.1, "leaf,
/// maybe PMD/PUD".
const UPPER_TABLES: u32 = 1;

/// The benchmark malloc1. Each iteration maps memory, writes to the first page of this memory (the header of
/// malloc), and unmaps the memory.
pub(super) const MALLOC1: Workload = Workload {
    name: "malloc1",
    summary: "will-it-scale malloc1, processes: malloc and free 128 MiB, of which one page is used",
    source: "spec fault.md §4.1",
    unit: "iterations",
    duration_ms: (50, 200),
    parameters: &[MMAP_NS, FAULT_NS, UNMAP_NS, lru::HOLD_NS, LIST_NS],
    build: |setup| build_large(setup, Tasks::Processes),
};

/// The benchmark malloc1 with threads, which share one address space.
pub(super) const MALLOC1_THREADS: Workload = Workload {
    name: "malloc1-threads",
    summary: "will-it-scale malloc1, threads: as malloc1, in one address space",
    // The threads queue for one lock, and their order in the queue affects the result. The measured time of
    // one second is long enough for each of 192 threads to get the lock a thousand times.
    duration_ms: (50, 1000),
    build: |setup| build_large(setup, Tasks::Threads),
    ..MALLOC1
};

fn build_large(setup: &Setup<'_>, tasks: Tasks) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let lrus = Lru::for_cpus(&mut plan, setup);
    let mmap = (tasks == Tasks::Threads).then(|| plan.lock(LockKind::Mmap));
    let mut slabs = Slabs::new(setup);
    let vma = slabs.cache(&mut plan, VMA_BYTES, MigrateType::Unmovable);
    let slabs = Arc::new(slabs.used_by(setup.cpus as usize));
    let mmap_ns = setup.get(&MMAP_NS);
    for (cpu, lru) in setup.each_cpu().zip(lrus) {
        let mut mapping = Mapping::new(setup, Backing::Anonymous, lru, mmap);
        let slabs = Arc::clone(&slabs);
        let out_of_step_ns = mmap_ns.saturating_mul(setup.cpus.into());
        plan.work(cpu, move |target| {
            // Each task begins at a random time. If all tasks began at once, they would always queue for the
            // lock in the order of their CPUs.
            let ns = exponential_ns(target, out_of_step_ns);
            target.compute(ns);
            while target.running() {
                mapping.exclusively(target, |target| target.compute(mmap_ns));
                let described = slabs.take(target, vma);
                for _ in 0..UPPER_TABLES {
                    mapping.add_table(target);
                }
                mapping.fault(target);
                let ns = exponential_ns(target, mmap_ns);
                target.compute(ns);
                mapping.unmap(target);
                described.into_iter().for_each(|object| slabs.give(target, object));
                target.score(1);
            }
            slabs.leave(target);
        });
    }
    Ok(plan)
}

const CALL_NS: Parameter = Parameter {
    key: "call_ns",
    default: 20,
    min: 1,
    meaning: "one malloc and free of 1 KiB, in ns",
    source: "guess",
};

/// The benchmark malloc2, a control without page allocation: malloc serves each request from malloc's own
/// cache.
pub(super) const MALLOC2: Workload = Workload {
    name: "malloc2",
    summary: "will-it-scale malloc2: malloc and free 1 KiB; a control, allocates no page",
    source: "spec fault.md §4.1",
    unit: "iterations",
    duration_ms: (50, 200),
    parameters: &[CALL_NS],
    build: build_small,
};

/// Number of iterations between two readings of the clock.
const ITERATIONS: u64 = 1024;

fn build_small(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let call_ns = setup.get(&CALL_NS);
    for cpu in setup.each_cpu() {
        plan.work(cpu, move |target| {
            while target.running() {
                target.compute(ITERATIONS * call_ns);
                target.score(ITERATIONS);
            }
        });
    }
    Ok(plan)
}
