//! pigz and oltp: programs that allocate and free few pages, because they reuse their buffers (spec fault.md
//! §4.3).

use std::collections::VecDeque;

use pageset_core::{MigrateType, Order};

use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::target::Fill;

const WORK_NS: Parameter = Parameter {
    key: "work_ns",
    default: 4_000_000,
    min: 1,
    meaning: "time to compress one block, in ns",
    source: "guess: 32 MB/s for each CPU",
};
const PAGES: Parameter = Parameter {
    key: "pages",
    default: 10,
    min: 0,
    meaning: "pages of the page cache that one unit of work writes",
    source: "guess: a block of 128 KiB, compressed to a third",
};
/// Largest number of one CPU's pages that wait to be written to disk. Guess.
const DIRTY_PAGES: usize = 256;

/// pigz compresses a file that is in the page cache.
pub(super) const PIGZ: Workload = Workload {
    name: "pigz",
    summary: "pigz: compress blocks of 128 KiB with buffers that are used again; nearly a control",
    source: "spec fault.md §4.3",
    unit: "blocks",
    duration_ms: (50, 200),
    parameters: &[WORK_NS, PAGES],
    build,
};

/// oltp is a database that keeps its data in its own buffers.
pub(super) const OLTP: Workload = Workload {
    name: "oltp",
    summary: "sysbench oltp: transactions in a database's own buffers; nearly a control",
    unit: "transactions",
    parameters: &[
        Parameter {
            default: 250_000,
            meaning: "time of one transaction on its CPU, in ns",
            source: "guess: 4000 transactions per second and CPU",
            ..WORK_NS
        },
        Parameter { default: 2, source: "guess: a log record, a reply", ..PAGES },
    ],
    ..PIGZ
};

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let (work_ns, pages) = (setup.get(&WORK_NS), setup.get(&PAGES));
    for cpu in setup.each_cpu() {
        plan.work(cpu, move |target| {
            let mut dirty = VecDeque::new();
            while target.running() {
                target.compute_in_user_mode(work_ns);
                for _ in 0..pages {
                    let page = target.alloc(Order::ZERO, MigrateType::Movable, Fill::Undefined);
                    dirty.extend(page.map(|pfn| (pfn, Order::ZERO)));
                    if dirty.len() > DIRTY_PAGES {
                        dirty.pop_front().into_iter().for_each(|block| target.free(block));
                    }
                }
                target.score(1);
            }
            dirty.into_iter().for_each(|block| target.free(block));
        });
    }
    Ok(plan)
}
