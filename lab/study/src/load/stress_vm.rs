//! stress-ng `--vm`: each worker maps memory, writes all of the memory, checks the contents, unmaps the
//! memory, and begins again.

use super::mapping::{Backing, FAULT_NS, Mapping, UNMAP_NS};
use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::lru::{self, Lru};

const PAGES: Parameter = Parameter {
    key: "mapping_pages",
    default: 65_536,
    min: 1,
    meaning: "pages of one worker's mapping",
    source: "stress-ng's manual: 256 MiB is the default of --vm-bytes",
};
const PAGE_NS: Parameter = Parameter {
    key: "page_ns",
    default: 5_000,
    min: 0,
    meaning: "time that a worker computes for each page, half of it while writing and half while checking, in ns",
    source: "guess: stress-ng goes over the memory several times, at a few GB/s for each worker",
};

/// The benchmark stress-ng `--vm`, with one process on each CPU.
pub(super) const STRESS_VM: Workload = Workload {
    name: "stress-vm",
    summary: "stress-ng --vm: map 256 MiB, write it page by page, check it, unmap",
    source: "stress-ng's manual, vm stressor",
    unit: "pages",
    duration_ms: (500, 4000),
    parameters: &[PAGES, PAGE_NS, FAULT_NS, UNMAP_NS, lru::HOLD_NS],
    build,
};

/// Number of pages that a worker checks between two readings of the clock. Guess: checking 64 pages takes
/// much less time than the interval between two ticks.
const CHECKED_AT_ONCE: u64 = 64;

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let (pages, page_ns) = (setup.get(&PAGES), setup.get(&PAGE_NS));
    let (write_ns, check_ns) = (page_ns / 2, page_ns - page_ns / 2);
    for (cpu, lru) in setup.each_cpu().zip(Lru::for_cpus(&mut plan, setup)) {
        let mut mapping = Mapping::new(setup, Backing::Anonymous, lru, None);
        plan.work(cpu, move |target| {
            // Each worker begins at a random point of its cycle, as if it had run for a long time.
            let mut left = target.random() % pages + 1;
            while target.running() {
                let wanted = std::mem::replace(&mut left, pages);
                let mut written = 0;
                while written < wanted && target.running() {
                    mapping.fault(target);
                    target.compute_in_user_mode(write_ns);
                    target.score(1);
                    written += 1;
                }
                let mut unchecked = written;
                while unchecked > 0 && target.running() {
                    let checked = unchecked.min(CHECKED_AT_ONCE);
                    target.compute_in_user_mode(check_ns * checked);
                    unchecked -= checked;
                }
                mapping.unmap(target);
            }
        });
    }
    Ok(plan)
}
