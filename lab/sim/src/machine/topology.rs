//! The place of each CPU: its core, caches and node, and the distances between nodes.

use pageset_core::{CacheSlice, CpuId, NodeId};
use serde::{Deserialize, Serialize};

/// Sockets, cores, hardware threads, nodes and the distances between nodes.
///
/// CPUs are numbered node by node. Inside a node, the first hardware threads of all cores come before the
/// second hardware threads. So the first CPUs of a node are on different cores. The firmware of a real
/// machine may number CPUs in other ways. The numbering of the CPUs matters only for runs that use just the
/// first n CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Number of processor packages.
    pub sockets: u32,
    /// Number of nodes, of all sockets together.
    pub nodes: u32,
    /// Number of cores of one node.
    pub cores_per_node: u32,
    /// Number of hardware threads of one core.
    pub threads_per_core: u32,
    /// Number of cores that share one last-level cache.
    pub cores_per_cache: u32,
    /// Sizes of the data caches.
    pub caches: Caches,
    /// Distances between nodes, row by row. The distance from a node to itself is 10.
    pub distances: Vec<u8>,
}

/// Data caches, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// Size of the first-level cache of one core.
    pub l1d_kib: u32,
    /// Size of the second-level cache of one core.
    pub l2_kib: u32,
    /// Size of the last-level cache of one group of cores.
    pub l3_kib: u32,
}

/// How near two CPUs are, from the nearest relation to the farthest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Near {
    /// Both CPU numbers name the same CPU.
    Same,
    /// The CPUs are hardware threads of one core.
    Sibling,
    /// The CPUs are on different cores under one last-level cache.
    Cache,
    /// The CPUs are on one node, under different last-level caches.
    Node,
    /// The CPUs are on different nodes.
    Remote,
}

impl Topology {
    /// Number of CPUs.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.nodes * self.cpus_per_node()
    }

    /// CPUs of one node.
    #[must_use]
    pub fn cpus_per_node(&self) -> u32 {
        self.cores_per_node * self.threads_per_core
    }

    /// The node of a CPU.
    #[must_use]
    pub fn node_of(&self, cpu: CpuId) -> NodeId {
        NodeId((cpu.0 / self.cpus_per_node()) as u16)
    }

    /// The number of a CPU's core. Cores are numbered across the whole machine.
    #[must_use]
    pub fn core_of(&self, cpu: CpuId) -> u32 {
        let node = cpu.0 / self.cpus_per_node();
        node * self.cores_per_node + (cpu.0 % self.cpus_per_node()) % self.cores_per_node
    }

    /// The number of a CPU's last-level cache. Last-level caches are numbered across the whole machine.
    #[must_use]
    pub fn cache_of(&self, cpu: CpuId) -> u32 {
        self.core_of(cpu) / self.cores_per_cache
    }

    /// Returns how near two CPUs are.
    #[must_use]
    pub fn near(&self, one: CpuId, other: CpuId) -> Near {
        if one == other {
            Near::Same
        } else if self.core_of(one) == self.core_of(other) {
            Near::Sibling
        } else if self.cache_of(one) == self.cache_of(other) {
            Near::Cache
        } else if self.node_of(one) == self.node_of(other) {
            Near::Node
        } else {
            Near::Remote
        }
    }

    /// The distance between two nodes. The distance from a node to itself is 10.
    #[must_use]
    pub fn distance(&self, one: NodeId, other: NodeId) -> u8 {
        self.distances[one.index() * self.nodes as usize + other.index()]
    }

    /// Returns the part of the data caches that one CPU gets. A CPU's part of a cache is the size of the
    /// cache, divided by the number of hardware threads that use the cache.
    #[must_use]
    pub fn cache_slice(&self) -> CacheSlice {
        let threads = self.threads_per_core;
        let last_level_kib = self.caches.l3_kib / (threads * self.cores_per_cache);
        let all_kib = self.caches.l1d_kib / threads + self.caches.l2_kib / threads + last_level_kib;
        CacheSlice { all_kib, last_level_kib }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of two nodes with four cores each. Each core has two hardware threads, and two cores share a
    /// last-level cache.
    fn small() -> Topology {
        Topology {
            sockets: 2,
            nodes: 2,
            cores_per_node: 4,
            threads_per_core: 2,
            cores_per_cache: 2,
            caches: Caches { l1d_kib: 32, l2_kib: 1024, l3_kib: 8192 },
            distances: vec![10, 21, 21, 10],
        }
    }

    #[test]
    fn cpus_are_numbered_node_by_node_and_first_threads_first() {
        let machine = small();
        assert_eq!(machine.cpus(), 16);
        let near = |one, other| machine.near(CpuId(one), CpuId(other));
        assert_eq!(near(0, 0), Near::Same);
        assert_eq!(near(0, 4), Near::Sibling);
        assert_eq!(near(0, 1), Near::Cache);
        assert_eq!(near(0, 5), Near::Cache);
        assert_eq!(near(0, 2), Near::Node);
        assert_eq!(near(7, 8), Near::Remote);
        assert_eq!(near(11, 15), Near::Sibling);
        assert_eq!(machine.distance(NodeId(0), NodeId(1)), 21);
    }

    #[test]
    fn a_slice_is_a_threads_share_of_each_cache() {
        let slice = small().cache_slice();
        assert_eq!(slice.last_level_kib, 8192 / 4);
        assert_eq!(slice.all_kib, 16 + 512 + 2048);
    }
}
