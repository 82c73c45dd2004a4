//! Models LRU lists and their locks. Each memory cgroup has one list with a lock on each node. A CPU takes
//! the lock once for several pages.
//!
//! LRU lists are not part of the allocator, but the kernel adds every anonymous page and every file page to
//! an LRU list. So the LRU lock is the most contended lock after the zone lock (spec fault.md §4.1, the 2018
//! study of batch sizes).

use std::collections::{BTreeMap, BTreeSet};

use pageset_core::CpuId;

use crate::load::plan::{LockKind, Plan};
use crate::load::setup::{Parameter, Setup};
use crate::random_time::exponential_ns;
use crate::target::{Hold, LockId, Target, locked};

/// Number of pages that a CPU collects before it takes the LRU lock and adds these pages to the list. Source:
/// spec fault.md §4.1, Linux 4.15 to 6.9.
const ADD_BATCH: u32 = 15;
/// Largest number of pages that a CPU removes from a list under one hold of the LRU lock. Source:
/// `SWAP_CLUSTER_MAX`, spec pcp.md §0.2.
pub(crate) const REMOVE_BATCH: u32 = 32;

/// Time that a CPU holds the LRU lock to add or remove one page.
pub(crate) const HOLD_NS: Parameter = Parameter {
    key: "lru_page_ns",
    default: 40,
    min: 0,
    meaning: "time under the LRU lock to add or remove one page, besides what the machine takes to fetch the list's head and \
              counters, in ns",
    source: "guess: two or three cold lines of metadata",
};

/// One CPU's access to the LRU list of its node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lru {
    lock: LockId,
    page_ns: u64,
    pending: u32,
}

impl Lru {
    /// Returns an access to the node's LRU list for each CPU that `setup` uses. The CPUs of a node share one
    /// list.
    pub(crate) fn for_cpus(plan: &mut Plan, setup: &Setup<'_>) -> Vec<Self> {
        Self::for_cgroups(plan, setup, 1)
    }

    /// Returns an access to an LRU list for each CPU, like [`for_cpus`](Self::for_cpus), for programs in
    /// several memory cgroups. Each cgroup has its own list on each node. CPU `n` belongs to cgroup `n`
    /// modulo the number of cgroups.
    pub(crate) fn for_cgroups(plan: &mut Plan, setup: &Setup<'_>, cgroups: u64) -> Vec<Self> {
        let page_ns = setup.get(&HOLD_NS);
        let mut locks = BTreeMap::new();
        let lock_of = |cpu: CpuId| {
            let node = setup.node_of(cpu);
            let list = (node, u64::from(cpu.0) % cgroups.max(1));
            *locks.entry(list).or_insert_with(|| plan.lock(LockKind::Lru(node)))
        };
        let locks: Vec<_> = setup.each_cpu().map(lock_of).collect();
        locks.into_iter().map(|lock| Self { lock, page_ns, pending: 0 }).collect()
    }

    /// Returns for each CPU an access to the lists of all nodes that `setup` uses, in the order of the nodes.
    /// A CPU collects pages separately for each node.
    pub(crate) fn for_nodes(plan: &mut Plan, setup: &Setup<'_>) -> Vec<Vec<Self>> {
        let page_ns = setup.get(&HOLD_NS);
        let nodes: BTreeSet<_> = setup.each_cpu().map(|cpu| setup.node_of(cpu)).collect();
        let locks: Vec<_> = nodes.into_iter().map(|node| plan.lock(LockKind::Lru(node))).collect();
        let of_cpu = || locks.iter().map(|lock| Self { lock: *lock, page_ns, pending: 0 }).collect();
        setup.each_cpu().map(|_| of_cpu()).collect()
    }

    /// Adds a page to the pages that this CPU collects. When the CPU has collected [`ADD_BATCH`] pages, adds
    /// all collected pages to the list.
    pub(crate) fn add(&mut self, target: &mut dyn Target) {
        self.pending += 1;
        if self.pending == ADD_BATCH {
            self.pending = 0;
            self.hold(target, ADD_BATCH);
        }
    }

    /// Adds the pages that this CPU has collected to the list.
    pub(crate) fn flush(&mut self, target: &mut dyn Target) {
        let pending = std::mem::take(&mut self.pending);
        if pending > 0 {
            self.hold(target, pending);
        }
    }

    /// Removes `pages` pages from the list, before the caller frees these pages.
    pub(crate) fn remove(&self, target: &mut dyn Target, pages: u32) {
        for done in (0..pages).step_by(REMOVE_BATCH as usize) {
            self.hold(target, REMOVE_BATCH.min(pages - done));
        }
    }

    /// Holds the LRU lock for a random time. On a real machine the time of a hold varies, because the CPU
    /// writes the metadata of the pages and of their neighbours on the list. The metadata may be in this
    /// CPU's caches, in another CPU's caches or only in memory.
    fn hold(&self, target: &mut dyn Target, pages: u32) {
        let ns = exponential_ns(target, self.page_ns * u64::from(pages));
        locked(target, self.lock, Hold::Exclusive, |target| target.compute(ns));
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::NodeId;

    use super::*;
    use crate::load::setup::{Generation, Settings, Topology};

    #[test]
    fn each_cgroup_has_a_list_of_its_own_on_each_node() {
        let (topology, settings) = (Topology::even(16, 2), Settings::default());
        let setup =
            Setup { topology: &topology, cpus: 16, generation: Generation::V6_6, settings: &settings };
        for (cgroups, lists) in [(1, 2), (4, 8), (100, 16)] {
            let mut plan = Plan::default();
            let lrus = Lru::for_cgroups(&mut plan, &setup, cgroups);
            assert_eq!((lrus.len(), plan.locks.len()), (16, lists), "{cgroups} cgroups");
        }
    }

    #[test]
    fn a_cpu_may_use_the_lists_of_all_nodes() {
        let (topology, settings) = (Topology::even(16, 4), Settings::default());
        let setup = Setup { topology: &topology, cpus: 8, generation: Generation::V6_6, settings: &settings };
        let mut plan = Plan::default();
        let lrus = Lru::for_nodes(&mut plan, &setup);
        let locks: Vec<_> = lrus[7].iter().map(|lru| plan.locks[lru.lock.0 as usize]).collect();
        assert_eq!((lrus.len(), plan.locks.len()), (8, 2), "only nodes whose CPUs are in use have a list");
        assert_eq!(locks, [LockKind::Lru(NodeId(0)), LockKind::Lru(NodeId(1))]);
    }
}
