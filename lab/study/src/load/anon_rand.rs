//! vm-scalability `anon-r-rand`: random reads of anonymous memory that is never written. The kernel maps the
//! shared page of zeros wherever the program reads, so the kernel allocates only page tables (spec fault.md
//! §4.2).

use std::sync::{Arc, Mutex, PoisonError};

use super::mapping::{Backing, FAULT_NS, Mapping, UNMAP_NS};
use super::plan::{LockKind, Plan};
use super::setup::{Parameter, PlanError, Setup};
use super::workload::{Tasks, Workload};
use crate::lru::{self, Lru};
use crate::random_time::exponential_ns;
use crate::target::{Hold, locked};

const TABLES: Parameter = Parameter {
    key: "tables",
    default: 2048,
    min: 1,
    meaning: "page-table pages that a process's memory needs, one for each 2 MiB",
    source: "guess: below the 10000 of the published texts, so that all tables exist before measuring begins",
};
const READ_NS: Parameter = Parameter {
    key: "read_ns",
    default: 150,
    min: 1,
    meaning: "one read outside of a fault on average, in ns",
    source: "guess: a TLB miss and a cache miss",
};

/// The benchmark anon-r-rand, with a separate process on each CPU.
pub(super) const ANON_R_RAND: Workload = Workload {
    name: "anon-r-rand",
    summary: "vm-scalability anon-r-rand: random reads of untouched memory, only page tables",
    source: "spec fault.md §4.2",
    unit: "reads",
    duration_ms: (50, 200),
    parameters: &[TABLES, READ_NS, FAULT_NS, UNMAP_NS, lru::HOLD_NS],
    build: |setup| build(setup, Tasks::Processes),
};

/// The benchmark anon-r-rand with threads, which share one address space.
pub(super) const ANON_R_RAND_MT: Workload = Workload {
    name: "anon-r-rand-mt",
    summary: "vm-scalability anon-r-rand-mt: as anon-r-rand, threads in one address space",
    build: |setup| build(setup, Tasks::Threads),
    ..ANON_R_RAND
};

/// For each part of 2 MiB of the process's memory, whether this part has a page table.
type Present = Arc<Mutex<Vec<bool>>>;

fn build(setup: &Setup<'_>, tasks: Tasks) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let lrus = Lru::for_cpus(&mut plan, setup);
    let mmap = (tasks == Tasks::Threads).then(|| plan.lock(LockKind::Mmap));
    let (tables, read_ns, fault_ns) = (setup.get(&TABLES), setup.get(&READ_NS), setup.get(&FAULT_NS));
    let fresh = || Present::new(Mutex::new(vec![false; tables as usize]));
    let shared = fresh();
    for (cpu, lru) in setup.each_cpu().zip(lrus) {
        let mut mapping = Mapping::new(setup, Backing::Anonymous, lru, None);
        let present = if tasks == Tasks::Threads { Arc::clone(&shared) } else { fresh() };
        plan.work(cpu, move |target| {
            while target.running() {
                // The time of a read varies, because a read may hit or miss the TLB and the caches.
                let ns = exponential_ns(target, read_ns);
                target.compute(ns);
                let place = (target.random() % tables) as usize;
                let is_first = {
                    let mut present = present.lock().unwrap_or_else(PoisonError::into_inner);
                    !std::mem::replace(&mut present[place], true)
                };
                // The process's memory is so large that nearly every read is the first read of its page. So
                // the model lets each read take a fault.
                let mut fault = |target: &mut dyn crate::Target| {
                    target.compute(fault_ns);
                    if is_first {
                        mapping.add_table(target);
                    }
                };
                match mmap {
                    Some(mmap) => locked(target, mmap, Hold::Shared, fault),
                    None => fault(target),
                }
                target.score(1);
            }
            mapping.unmap(target);
        });
    }
    Ok(plan)
}
