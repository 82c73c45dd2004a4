//! will-it-scale `page_fault1`: write one byte to each page of 128 MiB of anonymous memory, unmap it, begin again
//! (spec fault.md §4.1).

use super::anon::{AnonMemory, FAULT_NS, UNMAP_NS};
use super::{LockKind, Parameter, Plan, PlanError, Setup, Workload};
use crate::lru::{self, Lru};

const PAGES: Parameter = Parameter {
    key: "mapping_pages",
    default: 32_768,
    min: 1,
    meaning: "pages of one mapping",
    source: "spec fault.md §4.1: 128 MiB",
};
const PARAMETERS: &[Parameter] = &[PAGES, FAULT_NS, UNMAP_NS, lru::HOLD_NS];

/// Each CPU has a process of its own.
pub(super) const PAGE_FAULT1: Workload = Workload {
    name: "page_fault1",
    summary: "will-it-scale page_fault1, processes: fault in 128 MiB page by page, unmap",
    source: "spec fault.md §4.1",
    unit: "faults",
    parameters: PARAMETERS,
    build: |setup| build(setup, Tasks::Processes),
};

/// The CPUs share one address space.
pub(super) const PAGE_FAULT1_THREADS: Workload = Workload {
    name: "page_fault1-threads",
    summary: "will-it-scale page_fault1, threads: as page_fault1, in one address space",
    build: |setup| build(setup, Tasks::Threads),
    ..PAGE_FAULT1
};

/// Whether workers share their address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tasks {
    Processes,
    Threads,
}

fn build(setup: &Setup<'_>, tasks: Tasks) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let lrus = Lru::for_cpus(&mut plan, setup);
    let mmap = (tasks == Tasks::Threads).then(|| plan.lock(LockKind::Mmap));
    let pages = setup.get(&PAGES);
    for (cpu, lru) in setup.each_cpu().zip(lrus) {
        let mut memory = AnonMemory::new(setup, lru, mmap);
        plan.work(cpu, move |target| {
            // Processes that run for long are not in step.
            let mut left = target.random() % pages + 1;
            while target.running() {
                for _ in 0..std::mem::replace(&mut left, pages) {
                    if !target.running() {
                        break;
                    }
                    memory.fault(target);
                    target.score(1);
                }
                memory.unmap(target);
            }
        });
    }
    Ok(plan)
}
