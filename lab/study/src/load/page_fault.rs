//! will-it-scale `page_fault1`, `2` and `3`: write one byte to each page of a mapping of 128 MiB, unmap the
//! mapping, and begin again (spec fault.md §4.1).

use super::file::File;
use super::mapping::{Backing, COPY_NS, FAULT_NS, Mapping, UNMAP_NS};
use super::plan::{LockKind, Plan};
use super::setup::{Parameter, PlanError, Setup};
use super::workload::{Tasks, Workload};
use crate::lru::{self, Lru};

const PAGES: Parameter = Parameter {
    key: "mapping_pages",
    default: 32_768,
    min: 1,
    meaning: "pages of one mapping",
    source: "spec fault.md §4.1: 128 MiB",
};
const FILE_PAGES: Parameter = Parameter {
    key: "file_pages",
    default: 1024,
    min: 0,
    meaning: "pages of the mapped file that are allocated before the first fault and kept",
    source: "guess: fewer pages than are mapped, because the simulation does nothing with a cached page of a file",
};
const PARAMETERS: &[Parameter] = &[PAGES, FAULT_NS, UNMAP_NS, lru::HOLD_NS];
const COPY_PARAMETERS: &[Parameter] = &[PAGES, FILE_PAGES, FAULT_NS, COPY_NS, UNMAP_NS, lru::HOLD_NS];
const FILE_PARAMETERS: &[Parameter] = &[PAGES, FILE_PAGES, FAULT_NS, UNMAP_NS, lru::HOLD_NS];

/// The benchmark page_fault1. Its faults allocate anonymous memory. Each CPU runs a separate process.
pub(super) const PAGE_FAULT1: Workload = Workload {
    name: "page_fault1",
    summary: "will-it-scale page_fault1, processes: fault in 128 MiB page by page, unmap",
    source: "spec fault.md §4.1",
    unit: "faults",
    duration_ms: (50, 200),
    parameters: PARAMETERS,
    build: |setup| build(setup, Backing::Anonymous, Tasks::Processes),
};

/// The benchmark page_fault1 with threads, which share one address space.
pub(super) const PAGE_FAULT1_THREADS: Workload = Workload {
    name: "page_fault1-threads",
    summary: "will-it-scale page_fault1, threads: as page_fault1, in one address space",
    build: |setup| build(setup, Backing::Anonymous, Tasks::Threads),
    ..PAGE_FAULT1
};

/// The benchmark page_fault2. Its faults allocate pages and copy pages of a file to them.
pub(super) const PAGE_FAULT2: Workload = Workload {
    name: "page_fault2",
    summary: "will-it-scale page_fault2, processes: as page_fault1, each page a copy of a file's",
    parameters: COPY_PARAMETERS,
    build: |setup| build(setup, Backing::PrivateFile, Tasks::Processes),
    ..PAGE_FAULT1
};

/// The benchmark page_fault2 with threads, which share one address space.
pub(super) const PAGE_FAULT2_THREADS: Workload = Workload {
    name: "page_fault2-threads",
    summary: "will-it-scale page_fault2, threads: as page_fault2, in one address space",
    parameters: COPY_PARAMETERS,
    build: |setup| build(setup, Backing::PrivateFile, Tasks::Threads),
    ..PAGE_FAULT1
};

/// The benchmark page_fault3. The faults of page_fault3 map cached pages of a file, so these faults allocate
/// only page tables.
pub(super) const PAGE_FAULT3: Workload = Workload {
    name: "page_fault3",
    summary: "will-it-scale page_fault3, processes: as page_fault1, the pages are a file's own",
    parameters: FILE_PARAMETERS,
    build: |setup| build(setup, Backing::SharedFile, Tasks::Processes),
    ..PAGE_FAULT1
};

/// The benchmark page_fault3 with threads, which share one address space.
pub(super) const PAGE_FAULT3_THREADS: Workload = Workload {
    name: "page_fault3-threads",
    summary: "will-it-scale page_fault3, threads: as page_fault3, in one address space",
    parameters: FILE_PARAMETERS,
    build: |setup| build(setup, Backing::SharedFile, Tasks::Threads),
    ..PAGE_FAULT1
};

fn build(setup: &Setup<'_>, backing: Backing, tasks: Tasks) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let lrus = Lru::for_cpus(&mut plan, setup);
    let mmap = (tasks == Tasks::Threads).then(|| plan.lock(LockKind::Mmap));
    let pages = setup.get(&PAGES);
    let file_pages = if backing == Backing::Anonymous { 0 } else { setup.get(&FILE_PAGES) };
    for (cpu, lru) in setup.each_cpu().zip(lrus) {
        let mut mapping = Mapping::new(setup, backing, lru, mmap);
        plan.work(cpu, move |target| {
            // The pages of the file are allocated during the warm-up.
            let file = File::filled(target, file_pages);
            // Each process begins at a random point of its cycle, as if it had run for a long time.
            let mut left = target.random() % pages + 1;
            while target.running() {
                for _ in 0..std::mem::replace(&mut left, pages) {
                    if !target.running() {
                        break;
                    }
                    mapping.fault(target);
                    target.score(1);
                }
                mapping.unmap(target);
            }
            file.remove(target);
        });
    }
    Ok(plan)
}
