//! One slab cache, which decides which slab an object comes from, and which empty slabs are freed.
//!
//! This module only does bookkeeping, under a Rust mutex. The results of its functions tell the caller to
//! allocate a block, to free blocks, or to take the lock of a list. The caller releases the mutex before it
//! allocates or frees a block or takes a lock.

use pageset_core::{MigrateType, NodeId, Order};

use super::order::{PAGE_BYTES, slab_order};
use super::partial::PartialRule;
use crate::load::setup::Generation;
use crate::target::Block;

/// Number of slabs that a node keeps on its list even if all objects of these slabs are free. Source: SLUB's
/// documented `min_partial`, 5 for small objects, which is general knowledge and not in the spec.
const NODE_SLABS_MIN: usize = 5;

/// A cache of objects of one size.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) order: Order,
    pub(super) migratetype: MigrateType,
    objects: u32,
    rule: PartialRule,
    slabs: Vec<Slab>,
    unused: Vec<u32>,
    cpus: Vec<CpuSlabs>,
    /// For each node, the list of its slabs that have free objects and belong to no CPU. Some slabs of a list
    /// may be empty.
    nodes: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, Debug)]
struct Slab {
    block: Block,
    node: NodeId,
    in_use: u32,
    place: Place,
}

/// The place of a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The slab belongs to a CPU, which takes objects from the slab now or later.
    Cpu,
    /// All objects of the slab are in use, so the slab is on no list.
    Full,
    /// The slab is on the list of its node.
    Node,
}

/// Slabs of one CPU.
#[derive(Clone, Debug, Default)]
struct CpuSlabs {
    current: Option<u32>,
    /// The partly used slabs of the CPU, each with its weight; see [`PartialRule::weight`].
    partial: Vec<(u32, u32)>,
}

impl CpuSlabs {
    fn counted(&self) -> u32 {
        self.partial.iter().map(|(_, weight)| weight).sum()
    }
}

/// The slab that an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The object comes from a slab that the CPU already has. The value is the number of the slab.
    FromCpu(u32),
    /// The object comes from a slab that the CPU takes from the node's list, under the list's lock. The value
    /// is the number of the slab.
    FromNode(u32),
    /// Neither the CPU's own slabs nor the node's list have a free object, so the caller must add a new slab.
    NeedsSlab,
}

/// The steps that the caller of [`Cache::give`] must do after the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// Whether the caller must take the lock of the node's list.
    pub(super) takes_list_lock: bool,
    /// Empty slabs that the caller must give back to the allocator.
    pub(super) emptied: Vec<Block>,
}

impl Cache {
    pub(super) fn new(
        generation: Generation,
        size: u32,
        migratetype: MigrateType,
        (cpus, nodes): (u32, usize),
    ) -> Self {
        let order = slab_order(size, cpus);
        let objects = ((PAGE_BYTES << order.get()) / size.max(1)).max(1);
        Self {
            order,
            migratetype,
            objects,
            rule: PartialRule::new(generation, size, objects),
            slabs: Vec::new(),
            unused: Vec::new(),
            cpus: vec![CpuSlabs::default(); cpus as usize],
            nodes: vec![Vec::new(); nodes],
        }
    }

    /// Takes an object for a CPU. Returns the slab that the object comes from, or `NeedsSlab` if the caller
    /// must add a new slab.
    pub(super) fn take(&mut self, cpu: usize, node: NodeId) -> Taken {
        let own = &mut self.cpus[cpu];
        if let Some(current) = own.current {
            if self.slabs[current as usize].in_use < self.objects {
                self.slabs[current as usize].in_use += 1;
                return Taken::FromCpu(current);
            }
            self.slabs[current as usize].place = Place::Full;
            own.current = None;
        }
        if let Some((next, _)) = own.partial.pop() {
            return Taken::FromCpu(self.begin(cpu, next));
        }
        let Some(next) = self.nodes[node.index()].pop() else { return Taken::NeedsSlab };
        // The CPU takes further slabs under the same hold of the list's lock, until the weight of all taken
        // slabs exceeds half of the CPU's limit.
        let mut counted = self.weight(next);
        while !self.rule.is_enough(counted) {
            let Some(more) = self.nodes[node.index()].pop() else { break };
            let weight = self.weight(more);
            counted += weight;
            self.slabs[more as usize].place = Place::Cpu;
            self.cpus[cpu].partial.push((more, weight));
        }
        Taken::FromNode(self.begin(cpu, next))
    }

    fn weight(&self, id: u32) -> u32 {
        self.rule.weight(self.objects - self.slabs[id as usize].in_use)
    }

    /// Makes a new block this CPU's current slab, and takes the slab's first object.
    pub(super) fn add(&mut self, cpu: usize, node: NodeId, block: Block) -> u32 {
        let slab = Slab { block, node, in_use: 0, place: Place::Cpu };
        let id = match self.unused.pop() {
            Some(id) => {
                self.slabs[id as usize] = slab;
                id
            }
            None => {
                self.slabs.push(slab);
                self.slabs.len() as u32 - 1
            }
        };
        self.begin(cpu, id)
    }

    fn begin(&mut self, cpu: usize, id: u32) -> u32 {
        let slab = &mut self.slabs[id as usize];
        slab.place = Place::Cpu;
        slab.in_use += 1;
        self.cpus[cpu].current = Some(id);
        id
    }

    /// Gives an object of the slab `id` back, on any CPU.
    pub(super) fn give(&mut self, cpu: usize, id: u32) -> Given {
        let slab = &mut self.slabs[id as usize];
        slab.in_use -= 1;
        match slab.place {
            Place::Cpu => Given::default(),
            Place::Full => {
                slab.place = Place::Cpu;
                let weight = self.weight(id);
                let own = &mut self.cpus[cpu];
                let flushed = if self.rule.is_full(own.counted()) {
                    std::mem::take(&mut own.partial)
                } else {
                    Vec::new()
                };
                own.partial.push((id, weight));
                let takes_list_lock = !flushed.is_empty();
                let emptied = flushed.into_iter().filter_map(|(id, _)| self.list_or_retire(id)).collect();
                Given { takes_list_lock, emptied }
            }
            Place::Node if slab.in_use == 0 => {
                let list = &mut self.nodes[slab.node.index()];
                if list.len() <= NODE_SLABS_MIN {
                    return Given::default();
                }
                list.retain(|other| *other != id);
                Given { takes_list_lock: true, emptied: vec![self.retire(id)] }
            }
            Place::Node => Given::default(),
        }
    }

    /// Puts a slab on its node's list. If the slab is empty and the list has enough slabs, removes the slab
    /// from the cache, and returns the slab's block.
    fn list_or_retire(&mut self, id: u32) -> Option<Block> {
        let slab = &mut self.slabs[id as usize];
        let list = &mut self.nodes[slab.node.index()];
        if slab.in_use == 0 && list.len() >= NODE_SLABS_MIN {
            return Some(self.retire(id));
        }
        slab.place = Place::Node;
        list.push(id);
        None
    }

    fn retire(&mut self, id: u32) -> Block {
        self.unused.push(id);
        self.slabs[id as usize].block
    }

    /// Removes all empty slabs, and returns their blocks.
    pub(super) fn shrink(&mut self) -> Vec<Block> {
        let mut ids: Vec<u32> = self.nodes.iter_mut().flat_map(std::mem::take).collect();
        for cpu in &mut self.cpus {
            ids.extend(cpu.current.take());
            ids.extend(cpu.partial.drain(..).map(|(id, _)| id));
        }
        let (empty, used): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|id| self.slabs[*id as usize].in_use == 0);
        for id in used {
            let node = self.slabs[id as usize].node;
            self.slabs[id as usize].place = Place::Node;
            self.nodes[node.index()].push(id);
        }
        empty.into_iter().map(|id| self.retire(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::Pfn;

    use super::*;

    const NODE: NodeId = NodeId(0);

    fn cache(size: u32) -> Cache {
        Cache::new(Generation::V6_6, size, MigrateType::Unmovable, (4, 1))
    }

    /// Takes `count` objects on CPU 0, and adds new slabs as needed. Returns the slab of each object.
    fn take(cache: &mut Cache, count: u32) -> Vec<u32> {
        let mut next = cache.slabs.len() as u64;
        let mut one = || match cache.take(0, NODE) {
            Taken::FromCpu(id) | Taken::FromNode(id) => id,
            Taken::NeedsSlab => {
                next += 1;
                cache.add(0, NODE, (Pfn(next * 8), cache.order))
            }
        };
        (0..count).map(|_| one()).collect()
    }

    #[test]
    fn a_slab_is_needed_for_every_slabful() {
        let mut cache = cache(1024);
        assert_eq!((cache.order.get(), cache.objects), (2, 16));
        take(&mut cache, 33);
        assert_eq!(cache.slabs.len(), 3);
    }

    #[test]
    fn objects_of_one_cpu_come_back_to_it() {
        let mut cache = cache(1024);
        for _ in 0..100 {
            let ids = take(&mut cache, 16);
            ids.iter().for_each(|id| assert_eq!(cache.give(0, *id), Given::default()));
        }
        assert_eq!(cache.slabs.len(), 1);
    }

    #[test]
    fn a_burst_consumed_elsewhere_empties_the_slabs_that_it_filled() {
        let mut cache = cache(1024);
        for _ in 0..10 {
            let burst = take(&mut cache, 20 * 16);
            let emptied: usize = burst.into_iter().map(|id| cache.give(1, id).emptied.len()).sum();
            // Slabs that did not go back to the allocator belong to the consumer, to the producer or to the
            // node's list.
            assert!((10..20).contains(&emptied), "{emptied} of 20 slabs went back to the allocator");
        }
        assert!(cache.slabs.len() <= 30, "at most {} slabs were in use", cache.slabs.len());
        assert!(!cache.shrink().is_empty() && cache.shrink().is_empty());
        assert_eq!(cache.unused.len(), cache.slabs.len(), "all are given back");
    }

    #[test]
    fn a_steady_consumer_feeds_the_producer_through_the_nodes_list() {
        let mut cache = cache(1024);
        let mut under_way = std::collections::VecDeque::from(take(&mut cache, 40));
        let before = cache.slabs.len();
        for _ in 0..1000 {
            under_way.extend(take(&mut cache, 1));
            under_way.pop_front().into_iter().for_each(|id| drop(cache.give(1, id)));
        }
        assert!(cache.slabs.len() <= before + 8, "{} slabs, then {}", before, cache.slabs.len());
    }

    #[test]
    fn a_used_slab_survives_a_shrink() {
        let mut cache = cache(1024);
        let ids = take(&mut cache, 17);
        assert!(cache.shrink().is_empty());
        ids.into_iter().for_each(|id| assert_eq!(cache.give(2, id).emptied, []));
        assert_eq!(cache.shrink().len(), 2);
    }
}
