//! vm-scalability `anon-cow-seq`: a parent fills its memory and forks children. Each child writes all of this
//! memory in order, so the kernel copies every page (spec fault.md §3.5, §4.2).

use std::sync::{Arc, Mutex, PoisonError};

use pageset_core::{MigrateType, Order};

use super::mapping::{Backing, FAULT_NS, Mapping, TABLE_PAGES, UNMAP_NS};
use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::lru::{self, Lru};
use crate::slab::PAGE_BYTES;
use crate::target::{Access, Block, ChannelId, Fill, Target};

const PAGES: Parameter = Parameter {
    key: "region_pages",
    default: 2048,
    min: 1,
    meaning: "pages of the parent's memory, all of which each child copies",
    source: "guess: 8 MiB; by definition (spec fault.md §3.5) half of memory, shared by the children and the parent",
};
const ORDER: Parameter = Parameter {
    key: "page_order",
    default: 0,
    min: 0,
    meaning: "order of the parent's pages and of the copies: 0 to 10; 9 for the huge pages of 2018",
    source: "spec fault.md §3.2: since 5.8 a huge page is split, and single pages are copied",
};

/// The benchmark anon-cow-seq. The parent runs on the first CPU. Each CPU, also the first CPU, runs one child
/// after another.
pub(super) const ANON_COW_SEQ: Workload = Workload {
    name: "anon-cow-seq",
    summary: "vm-scalability anon-cow-seq: children write all of their parent's memory, page by page",
    source: "spec fault.md §3.5",
    unit: "pages",
    duration_ms: (50, 200),
    parameters: &[PAGES, ORDER, FAULT_NS, UNMAP_NS, lru::HOLD_NS],
    build,
};

/// The parent's blocks, which each child inherits and copies.
type Inherited = Arc<Mutex<Vec<Block>>>;

fn build(setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let lrus = Lru::for_cpus(&mut plan, setup);
    let order = setup.at_most(&ORDER, Order::MAX.get().into())?;
    let order = Order::new(order as u8).unwrap_or(Order::MAX);
    let inherited = Inherited::default();
    // The channels of this benchmark carry no messages. The parent closes a channel in `forks` to let a child
    // begin. Each CPU except the first CPU closes the channel `exits` after its last child, so that the
    // parent can end.
    let forks: Vec<_> = (1..setup.cpus).map(|_| plan.channel(1, 1)).collect();
    let exits = (setup.cpus > 1).then(|| plan.channel(1, setup.cpus - 1));
    let blocks = setup.get(&PAGES).div_ceil(u64::from(order.frames()));
    for (cpu, lru) in setup.each_cpu().zip(lrus) {
        let memory = Mapping::new(setup, Backing::Anonymous, lru, None);
        let child = Child { memory, inherited: Arc::clone(&inherited), order };
        if cpu.0 == 0 {
            let forks = forks.clone();
            plan.work(cpu, move |target| parent(child, &forks, exits, blocks, target));
        } else {
            let fork = forks[cpu.index() - 1];
            plan.work(cpu, move |target| {
                target.receive(fork);
                child.run(target);
                exits.into_iter().for_each(|exits| target.close(exits));
            });
        }
    }
    Ok(plan)
}

/// Does the work of the parent's CPU: fills the parent's memory, lets the children begin, works as a child
/// itself, and ends last.
fn parent(child: Child, forks: &[ChannelId], exits: Option<ChannelId>, blocks: u64, target: &mut dyn Target) {
    let (inherited, order) = (Arc::clone(&child.inherited), child.order);
    let mut filled = Vec::new();
    while (filled.len() as u64) < blocks && target.running() {
        // If memory is full, the parent fills fewer blocks, so the children inherit fewer blocks.
        let Ok(pfn) = target.alloc(order, MigrateType::Movable, Fill::Zeroed) else { break };
        filled.push((pfn, order));
    }
    *inherited.lock().unwrap_or_else(PoisonError::into_inner) = filled;
    forks.iter().for_each(|fork| target.close(*fork));
    child.run(target);
    exits.into_iter().for_each(|exits| drop(target.receive(exits)));
    let mut filled = std::mem::take(&mut *inherited.lock().unwrap_or_else(PoisonError::into_inner));
    if !filled.is_empty() {
        target.free_list(&mut filled);
    }
}

/// The children that run on one CPU, one after another.
struct Child {
    memory: Mapping,
    inherited: Inherited,
    order: Order,
}

impl Child {
    fn run(mut self, target: &mut dyn Target) {
        let inherited = self.inherited.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let pages = u64::from(self.order.frames());
        // The first child of each CPU begins at a random point of its work, as if the benchmark had run for a
        // long time.
        let mut begin = (target.random() % (inherited.len() as u64).max(1)) as usize;
        while target.running() && !inherited.is_empty() {
            // A fork copies the page tables.
            let tables = (inherited.len() as u64 * pages).div_ceil(TABLE_PAGES);
            (0..tables).for_each(|_| self.memory.add_table(target));
            for source in &inherited[std::mem::take(&mut begin)..] {
                if !target.running() {
                    break;
                }
                if let Some((pfn, order)) = self.memory.copy_on_write(target, *source) {
                    // The fault has copied the block. Now the child writes each word of the copied block.
                    let pages = u64::from(order.frames());
                    target.touch(pfn, pages * u64::from(PAGE_BYTES), Access::Write);
                    target.score(pages);
                }
            }
            self.memory.unmap(target);
        }
    }
}
