//! The page cache of a machine with full memory, and the reclaim of its pages.
//!
//! Each node has a list of its cached pages and a reclaimer. The reclaimer wakes when the node's free pages
//! fall below the low watermark, and works until the free pages reach the high watermark. A reader that gets
//! no page reclaims pages on all nodes itself. If the reader still gets no page, it empties the page sets of
//! all CPUs.
//!
//! If the allocator has no watermarks, memory is not full, and the length of a node's list of cached pages
//! decides when to reclaim.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pageset_core::{CpuId, MigrateType, NodeId, Order, Pfn, Reclaim};

use super::setup::Setup;
use crate::lru::{Lru, REMOVE_BATCH};
use crate::target::{Block, Target};

/// Time that a reclaimer sleeps if it has no work, and that a reader sleeps if no page can be reclaimed.
/// Guess.
const SLEEP_NS: u64 = 20_000;

/// The cached pages of one node, oldest first.
#[derive(Debug)]
struct List {
    node: NodeId,
    /// The CPUs of the node that the workload uses.
    cpus: Vec<CpuId>,
    pages: Mutex<VecDeque<Block>>,
    /// Number of pages in the list when the run begins. If the allocator has no watermarks, readers also keep
    /// the list at about `room` pages.
    room: usize,
}

impl List {
    fn pages(&self) -> MutexGuard<'_, VecDeque<Block>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_oldest(&self) -> Vec<Block> {
        let mut pages = self.pages();
        let count = pages.len().min(REMOVE_BATCH as usize);
        pages.drain(..count).collect()
    }
}

/// The page cache of all nodes, which all CPUs share.
#[derive(Debug)]
pub(super) struct PageCache {
    lists: Vec<List>,
    /// Whether a CPU is emptying all page sets now. While a CPU is emptying page sets, a second CPU that
    /// finds no page does not empty page sets too, but reclaims again.
    drains: AtomicBool,
}

impl PageCache {
    /// Makes a page cache with `pages` pages for each CPU, on the CPU's node.
    pub(super) fn new(setup: &Setup<'_>, pages: u64) -> Arc<Self> {
        let mut lists: Vec<List> = Vec::new();
        for cpu in setup.each_cpu() {
            let node = setup.node_of(cpu);
            let at = lists.iter().position(|list| list.node == node).unwrap_or_else(|| {
                lists.push(List { node, cpus: Vec::new(), pages: Mutex::default(), room: 0 });
                lists.len() - 1
            });
            lists[at].cpus.push(cpu);
            lists[at].room += pages as usize;
        }
        lists.sort_by_key(|list| list.node);
        Arc::new(Self { lists, drains: AtomicBool::new(false) })
    }

    /// Returns each node with the number of pages in the node's cache when the run begins.
    pub(super) fn rooms(&self) -> Vec<(NodeId, u64)> {
        self.lists.iter().map(|list| (list.node, list.room as u64)).collect()
    }

    /// Whether the CPU is its node's reclaimer. If a node has several CPUs, its last CPU is the reclaimer.
    pub(super) fn is_reclaimer(&self, cpu: CpuId) -> bool {
        self.lists.iter().any(|list| list.cpus.len() > 1 && list.cpus.last() == Some(&cpu))
    }

    /// Returns one CPU's access to the page cache. `lrus` has an LRU list for each node, in the order of the
    /// nodes.
    pub(super) fn of_cpu(self: &Arc<Self>, cpu: CpuId, lrus: Vec<Lru>, reclaim_ns: u64) -> CpuCache {
        let own = self.lists.iter().position(|list| list.cpus.contains(&cpu));
        CpuCache { cache: Arc::clone(self), own: own.expect("the workload uses this CPU"), lrus, reclaim_ns }
    }
}

/// One CPU's access to the page cache.
#[derive(Debug)]
pub(super) struct CpuCache {
    cache: Arc<PageCache>,
    /// Index of the CPU's own node.
    own: usize,
    lrus: Vec<Lru>,
    /// Time to find, unmap and drop one page, in nanoseconds.
    reclaim_ns: u64,
}

impl CpuCache {
    /// Number of pages that this CPU brings into its node's cache before the run. The CPUs of a node divide
    /// the pages of the node's cache equally.
    pub(super) fn share(&self) -> usize {
        let list = &self.cache.lists[self.own];
        list.room / list.cpus.len()
    }

    /// Allocates a new page for the cache, and adds it to the LRU list of its node. If no page is free,
    /// reclaims memory until a page is free. Returns `None` if the run ends before a page is free.
    pub(super) fn page(&mut self, target: &mut dyn Target) -> Option<Pfn> {
        let pfn = self.free_page(target)?;
        let node = self.index_of(target, pfn);
        self.lrus[node].add(target);
        Some(pfn)
    }

    fn free_page(&self, target: &mut dyn Target) -> Option<Pfn> {
        loop {
            if let Some(pfn) = self.page_above_min(target) {
                return Some(pfn);
            }
            // The reader reclaims pages of all nodes, beginning with its own node.
            let nodes = self.cache.lists.len();
            let reclaimed: usize =
                (0..nodes).map(|step| self.reclaim(target, (self.own + step) % nodes)).sum();
            if let Some(pfn) = self.page_above_min(target) {
                return Some(pfn);
            }
            // Pages in page sets do not count as free, and the reclaimed pages may be in page sets. So this
            // CPU empties the page sets, unless another CPU is emptying them now.
            if !self.cache.drains.swap(true, Relaxed) {
                target.drain_all();
                self.cache.drains.store(false, Relaxed);
            }
            if reclaimed == 0 {
                target.sleep(SLEEP_NS);
            }
            if !target.running() {
                return None;
            }
        }
    }

    fn page_above_min(&self, target: &mut dyn Target) -> Option<Pfn> {
        let list = &self.cache.lists[self.own];
        let slack = REMOVE_BATCH as usize * list.cpus.len();
        if list.pages().len() > list.room + slack && target.memory(list.node).is_none() {
            return None;
        }
        target.alloc_above_min(Order::ZERO, MigrateType::Movable).ok()
    }

    /// Returns the index of a page's node. If the workload uses no CPU of this node, the page counts as a
    /// page of this CPU's node.
    fn index_of(&self, target: &mut dyn Target, pfn: Pfn) -> usize {
        let node = target.node_of(pfn);
        self.cache.lists.iter().position(|list| Some(list.node) == node).unwrap_or(self.own)
    }

    /// Adds a page to the cache, as the newest page of the page's node.
    pub(super) fn put(&self, target: &mut dyn Target, pfn: Pfn) {
        let list = &self.cache.lists[self.index_of(target, pfn)];
        list.pages().push_back((pfn, Order::ZERO));
    }

    /// Brings this CPU's share of pages into the cache, so that readers must reclaim from the beginning of
    /// the run.
    pub(super) fn fill(&self, target: &mut dyn Target) {
        for _ in 0..self.share() {
            let Some(pfn) = self.page_above_min(target) else { return };
            self.put(target, pfn);
        }
    }

    /// Does the work of the reclaimer of this CPU's node until the run ends.
    pub(super) fn reclaim_in_background(&self, target: &mut dyn Target) {
        let list = &self.cache.lists[self.own];
        let mut reclaim = Reclaim::Idle;
        while target.running() {
            let is_short = match target.memory(list.node) {
                Some(memory) if reclaim == Reclaim::Active => memory.free < memory.watermarks.high,
                Some(memory) => memory.free < memory.watermarks.low,
                None => list.pages().len() > list.room,
            };
            let now = if is_short { Reclaim::Active } else { Reclaim::Idle };
            if std::mem::replace(&mut reclaim, now) != now {
                target.set_reclaim(list.node, now);
            }
            if !is_short || self.reclaim(target, self.own) == 0 {
                target.sleep(SLEEP_NS);
            }
        }
        target.set_reclaim(list.node, Reclaim::Idle);
    }

    /// Removes a node's oldest pages from the cache, and frees them as one list. Returns the number of pages
    /// that were removed.
    fn reclaim(&self, target: &mut dyn Target, node: usize) -> usize {
        let mut oldest = self.cache.lists[node].take_oldest();
        let count = oldest.len();
        if count > 0 {
            self.lrus[node].remove(target, count as u32);
            target.compute(self.reclaim_ns * count as u64);
            target.free_list(&mut oldest);
        }
        count
    }

    /// Frees all pages of the cache when the run has ended.
    pub(super) fn empty(&self, target: &mut dyn Target) {
        for node in 0..self.cache.lists.len() {
            while self.reclaim(target, node) > 0 {}
        }
    }
}
