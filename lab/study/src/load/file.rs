//! A file whose pages are cached. The benchmark read1 reads a cached file, and write1 writes a cached file
//! (spec fault.md §4.1).

use pageset_core::{MigrateType, Order};

use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::target::{Block, Fill, Target};

/// The cached pages of a file.
#[derive(Debug)]
pub(super) struct File(Vec<Block>);

impl File {
    /// Allocates all `pages` pages of a cached file.
    pub(super) fn filled(target: &mut dyn Target, pages: u64) -> Self {
        let mut page = || target.alloc(Order::ZERO, MigrateType::Movable, Fill::Undefined).ok();
        Self((0..pages).filter_map(|_| page()).map(|pfn| (pfn, Order::ZERO)).collect())
    }

    /// Gives all pages of the file back to the allocator.
    pub(super) fn remove(mut self, target: &mut dyn Target) {
        if !self.0.is_empty() {
            target.free_list(&mut self.0);
        }
    }
}

const PAGES: Parameter = Parameter {
    key: "file_pages",
    default: 256,
    min: 1,
    meaning: "pages of the file",
    source: "spec fault.md §4.1: 1 MiB",
};
const CALL_NS: Parameter = Parameter {
    key: "call_ns",
    default: 500,
    min: 1,
    meaning: "one read or write of 4 KiB, in ns",
    source: "guess",
};

/// The benchmark read1 reads a cached file.
pub(super) const READ1: Workload = Workload {
    name: "read1",
    summary: "will-it-scale read1: read a cached file of 1 MiB; a control, allocates nothing",
    source: "spec fault.md §4.1",
    unit: "calls",
    duration_ms: (50, 200),
    parameters: &[PAGES, CALL_NS],
    build,
};

/// The benchmark write1 overwrites a cached file.
pub(super) const WRITE1: Workload = Workload {
    name: "write1",
    summary: "will-it-scale write1: overwrite a cached file of 1 MiB; a control, allocates nothing",
    parameters: &[PAGES, Parameter { default: 900, ..CALL_NS }],
    ..READ1
};

/// Number of calls between two readings of the clock.
const CALLS: u64 = 64;

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let (pages, call_ns) = (setup.get(&PAGES), setup.get(&CALL_NS));
    for cpu in setup.each_cpu() {
        plan.work(cpu, move |target| {
            let file = File::filled(target, pages);
            while target.running() {
                target.compute(CALLS * call_ns);
                target.score(CALLS);
            }
            file.remove(target);
        });
    }
    Ok(plan)
}
