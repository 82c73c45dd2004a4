//! vm-scalability `lru-file-mmap-read`: processes read files larger than memory through mappings. So the page
//! cache allocates pages as fast as the reclaimer frees them. The reclaimer frees them on other CPUs than the
//! ones that read them (spec fault.md §4.2).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use pageset_core::{MigrateType, NodeId, Order};

use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};
use super::workload::Workload;
use crate::lru::{self, Lru, REMOVE_BATCH};
use crate::slab::PAGE_BYTES;
use crate::target::{Access, Block, Fill, Target};

const CACHE: Parameter = Parameter {
    key: "cache_pages",
    default: 4096,
    min: 64,
    meaning: "pages of the page cache for each CPU; more are reclaimed",
    source: "guess: memory is full, so its size does not matter to the allocator",
};
const READ_NS: Parameter = Parameter {
    key: "read_page_ns",
    default: 1200,
    min: 1,
    meaning: "work to read one page through the mapping, with its share of the fault, in ns",
    source: "guess: 512 reads of 8 bytes, and a fault for 16 pages",
};
const RECLAIM_NS: Parameter = Parameter {
    key: "reclaim_page_ns",
    default: 300,
    min: 1,
    meaning: "work to find, unmap and drop one page, in ns",
    source: "guess",
};
/// Pages that the system reads when a sequential reader misses one. Source: readahead of 128 KiB, general
/// knowledge, not in the spec.
const READAHEAD: u32 = 32;
/// How long the reclaimer sleeps when it has no work, in ns. Guess.
const RECLAIM_SLEEP_NS: u64 = 20_000;

/// Sequential reads. Each miss reads several pages ahead.
pub(super) const LRU_FILE_READ: Workload = Workload {
    name: "lru-file-mmap-read",
    summary: "vm-scalability lru-file-mmap-read: stream files through a full page cache",
    source: "spec fault.md §4.2",
    unit: "pages",
    duration_ms: (50, 200),
    parameters: &[CACHE, READ_NS, RECLAIM_NS, lru::HOLD_NS],
    build: |setup| build(setup, READAHEAD),
};

/// Random reads. Each miss reads one page.
pub(super) const LRU_FILE_READ_RAND: Workload = Workload {
    name: "lru-file-mmap-read-rand",
    summary: "vm-scalability lru-file-mmap-read-rand: as lru-file-mmap-read, one page at a time",
    parameters: &[CACHE, Parameter { default: 3000, ..READ_NS }, RECLAIM_NS, lru::HOLD_NS],
    build: |setup| build(setup, 1),
    ..LRU_FILE_READ
};

fn build(setup: &Setup<'_>, per_miss: u32) -> Result<Plan, PlanError> {
    if setup.cpus < 2 {
        return Err(PlanError::TooFewCpus { needed: 2 });
    }
    let mut plan = Plan::default();
    let lrus = Lru::for_cpus(&mut plan, setup);
    let nodes = Nodes::new(setup);
    let costs = (setup.get(&READ_NS), setup.get(&RECLAIM_NS));
    for (cpu, lru) in setup.each_cpu().zip(lrus) {
        let cache = nodes.cache_of(setup.node_of(cpu));
        let mut reader = Reader { cache, lru, read_ns: costs.0, reclaim_ns: costs.1 };
        // The last CPU of each node reclaims. A node with one CPU has no reclaimer.
        if nodes.is_last(setup, cpu.0) {
            plan.work(cpu, move |target| reader.reclaim_in_background(target));
        } else {
            plan.work(cpu, move |target| reader.read(target, per_miss));
        }
    }
    Ok(plan)
}

/// The page cache of one node, oldest page first.
#[derive(Debug)]
struct Cache {
    pages: Mutex<VecDeque<Block>>,
    /// Number of cached pages above which the reclaimer works.
    low: usize,
    /// Number of cached pages above which readers reclaim pages too.
    high: usize,
}

impl Cache {
    fn len(&self) -> usize {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn put(&self, blocks: &mut Vec<Block>) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).extend(blocks.drain(..));
    }

    fn take_oldest(&self, blocks: &mut Vec<Block>) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let count = pages.len().min(REMOVE_BATCH as usize);
        blocks.extend(pages.drain(..count));
    }
}

struct Nodes(Vec<(NodeId, u32, Arc<Cache>)>);

impl Nodes {
    fn new(setup: &Setup<'_>) -> Self {
        let mut counts: Vec<(NodeId, u32)> = Vec::new();
        for node in setup.each_cpu().map(|cpu| setup.node_of(cpu)) {
            match counts.iter_mut().find(|(known, _)| *known == node) {
                Some((_, cpus)) => *cpus += 1,
                None => counts.push((node, 1)),
            }
        }
        let cache = |cpus: u32| {
            let low = (setup.get(&CACHE) * u64::from(cpus)) as usize;
            let slack = (REMOVE_BATCH * cpus) as usize;
            Arc::new(Cache { pages: Mutex::default(), low, high: low + slack })
        };
        Self(counts.into_iter().map(|(node, cpus)| (node, cpus, cache(cpus))).collect())
    }

    fn cache_of(&self, node: NodeId) -> Arc<Cache> {
        let found = self.0.iter().find(|(known, ..)| *known == node);
        Arc::clone(&found.expect("every CPU's node is counted").2)
    }

    /// Whether `cpu` is the reclaimer: the last CPU in use on its node, if the node has other CPUs in use.
    fn is_last(&self, setup: &Setup<'_>, cpu: u32) -> bool {
        let node = setup.node_of(pageset_core::CpuId(cpu));
        let has_others = self.0.iter().any(|(known, cpus, _)| *known == node && *cpus > 1);
        let is_later = |other: pageset_core::CpuId| other.0 > cpu && setup.node_of(other) == node;
        has_others && !setup.each_cpu().any(is_later)
    }
}

struct Reader {
    cache: Arc<Cache>,
    lru: Lru,
    read_ns: u64,
    reclaim_ns: u64,
}

impl Reader {
    fn read(&mut self, target: &mut dyn Target, per_miss: u32) {
        let mut fresh = Vec::new();
        self.fill(target);
        while target.running() {
            for _ in 0..per_miss {
                let Ok(pfn) = target.alloc(Order::ZERO, MigrateType::Movable, Fill::Undefined) else { break };
                fresh.push((pfn, Order::ZERO));
                self.lru.add(target);
            }
            for (pfn, _) in &fresh {
                target.touch(*pfn, u64::from(PAGE_BYTES), Access::Write);
                target.compute(self.read_ns);
            }
            target.score(fresh.len() as u64);
            self.cache.put(&mut fresh);
            if self.cache.len() > self.cache.high {
                self.reclaim(target);
            }
        }
        self.empty(target);
    }

    /// Fills this CPU's share of the cache, so that reclaim begins with the run.
    fn fill(&self, target: &mut dyn Target) {
        let share = self.cache.low / (self.cache.high - self.cache.low).max(1) * REMOVE_BATCH as usize;
        let mut page = || target.alloc(Order::ZERO, MigrateType::Movable, Fill::Undefined).ok();
        let mut pages = (0..share).filter_map(|_| page()).map(|pfn| (pfn, Order::ZERO)).collect();
        self.cache.put(&mut pages);
    }

    fn reclaim_in_background(&mut self, target: &mut dyn Target) {
        while target.running() {
            if self.cache.len() > self.cache.low {
                self.reclaim(target);
            } else {
                target.sleep(RECLAIM_SLEEP_NS);
            }
        }
        self.empty(target);
    }

    /// Takes the oldest pages off the list, and frees them as one list.
    fn reclaim(&self, target: &mut dyn Target) {
        let mut oldest = Vec::with_capacity(REMOVE_BATCH as usize);
        self.cache.take_oldest(&mut oldest);
        if oldest.is_empty() {
            return;
        }
        self.lru.remove(target, oldest.len() as u32);
        target.compute(self.reclaim_ns * oldest.len() as u64);
        target.free_list(&mut oldest);
    }

    fn empty(&self, target: &mut dyn Target) {
        while self.cache.len() > 0 {
            self.reclaim(target);
        }
    }
}
