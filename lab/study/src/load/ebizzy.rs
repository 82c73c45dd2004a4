//! ebizzy: each thread copies a record of 512 KiB into new memory, searches the copy and frees it (spec
//! fault.md §4.3).

use super::mapping::{Backing, FAULT_NS, Mapping, UNMAP_NS};
use super::plan::{LockKind, Plan};
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::lru::{self, Lru};

/// Number of pages of a record. Source: spec fault.md §4.3, 512 KiB.
const RECORD_PAGES: u32 = 128;
const RECORD_NS: Parameter = Parameter {
    key: "record_ns",
    default: 40_000,
    min: 1,
    meaning: "work to copy and search one record, in ns",
    source: "guess: 13 GB/s",
};
const MAPPED: Parameter = Parameter {
    key: "mapped_percent",
    default: 1,
    min: 0,
    meaning: "records that are mapped and unmapped instead of coming from malloc's memory, in percent; 100 is -m",
    source: "guess: spec fault.md §4.3, \"few page events\"",
};

/// The benchmark ebizzy, with one thread on each CPU. All threads share one address space.
pub(super) const EBIZZY: Workload = Workload {
    name: "ebizzy",
    summary: "ebizzy: threads copy and search records of 512 KiB, mostly in memory that malloc keeps",
    source: "spec fault.md §4.3",
    unit: "records",
    duration_ms: (50, 200),
    parameters: &[RECORD_NS, MAPPED, FAULT_NS, UNMAP_NS, lru::HOLD_NS],
    build,
};

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let lrus = Lru::for_cpus(&mut plan, setup);
    let mmap = plan.lock(LockKind::Mmap);
    let (record_ns, mapped_percent) = (setup.get(&RECORD_NS), setup.get(&MAPPED));
    for (cpu, lru) in setup.each_cpu().zip(lrus) {
        let mut record = Mapping::new(setup, Backing::Anonymous, lru, Some(mmap));
        plan.work(cpu, move |target| {
            while target.running() {
                let is_mapped = target.random() % 100 < mapped_percent;
                if is_mapped {
                    (0..RECORD_PAGES).for_each(|_| record.fault(target));
                }
                target.compute_in_user_mode(record_ns);
                target.score(1);
                if is_mapped {
                    record.unmap(target);
                }
            }
        });
    }
    Ok(plan)
}
