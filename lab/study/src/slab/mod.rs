//! Small objects of the kernel: a model of slab caches with SLUB's orders and lists (spec fault.md §4.0).
//!
//! The model is needed because objects cause allocations of pages when a new slab is needed, and frees when a
//! slab becomes empty. If one CPU allocates objects and another CPU frees them, slabs move between the CPUs.
//! So a stream of messages of a few hundred bytes causes allocations of order 2 or 3.

mod cache;
pub(crate) mod object;
mod order;
mod partial;

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pageset_core::{AllocError, MigrateType, NodeId};

use crate::load::plan::{LockKind, Plan};
use crate::load::setup::{Generation, Parameter, Setup};
use crate::target::{Block, Fill, Hold, LockId, Message, Target, locked};
use cache::{Cache, Taken};
pub use object::Object;
pub(crate) use order::{PAGE_BYTES, order_of};

/// Largest size of a request that slab caches serve. Larger requests get blocks of pages. Source: spec
/// fault.md §4.0.
const KMALLOC_BYTES_MAX: u32 = 8192;

/// Time that a CPU holds the lock of a slab cache's list.
pub(crate) const LIST_NS: Parameter = Parameter {
    key: "slab_list_ns",
    default: 100,
    min: 0,
    meaning: "time under the lock of a slab cache's list, in ns",
    source: "guess",
};

/// The number of a slab cache in a [`Slabs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheId(u16);

/// All slab caches of a workload.
#[derive(Debug)]
pub(crate) struct Slabs {
    caches: Vec<Mutex<Cache>>,
    kmalloc: Vec<(u32, CacheId)>,
    /// For each cache, the lock of its lists. One lock protects a cache's lists of all nodes, because a
    /// workload's objects are nearly always on one node.
    locks: Vec<LockId>,
    nodes_of_cpus: Vec<NodeId>,
    list_ns: u64,
    generation: Generation,
    /// Number of workers that still use the caches.
    users: AtomicUsize,
}

impl Slabs {
    /// Makes a set of slab caches that has no cache yet.
    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        Self {
            caches: Vec::new(),
            kmalloc: Vec::new(),
            locks: Vec::new(),
            nodes_of_cpus: setup.topology.nodes_of_cpus.clone(),
            list_ns: setup.get(&LIST_NS),
            generation: setup.generation,
            users: AtomicUsize::new(0),
        }
    }

    /// Adds a cache for objects of `size` bytes.
    pub(crate) fn cache(&mut self, plan: &mut Plan, size: u32, migratetype: MigrateType) -> CacheId {
        let nodes = self.nodes_of_cpus.iter().map(|node| node.index() + 1).max().unwrap_or(1);
        let cache = Cache::new(self.generation, size, migratetype, (self.nodes_of_cpus.len() as u32, nodes));
        self.caches.push(Mutex::new(cache));
        self.locks.push(plan.lock(LockKind::SlabList));
        CacheId(self.caches.len() as u16 - 1)
    }

    /// Adds a general cache (kmalloc) for requests of `bytes` bytes, if slab caches serve requests of this
    /// size and no such cache exists yet.
    pub(crate) fn kmalloc_cache(&mut self, plan: &mut Plan, bytes: u32) {
        let size = kmalloc_size(bytes);
        if bytes <= KMALLOC_BYTES_MAX && !self.kmalloc.iter().any(|(known, _)| *known == size) {
            let id = self.cache(plan, size, MigrateType::Unmovable);
            self.kmalloc.push((size, id));
        }
    }

    /// Allocates `bytes` bytes and adds the memory to `message`: an object if a slab cache serves requests of
    /// this size, and a block of pages otherwise.
    pub(crate) fn kmalloc(
        &self,
        target: &mut dyn Target,
        bytes: u32,
        message: &mut Message,
    ) -> Result<(), AllocError> {
        let size = kmalloc_size(bytes);
        match self.kmalloc.iter().find(|(known, _)| *known == size && bytes <= KMALLOC_BYTES_MAX) {
            Some((_, id)) => message.objects.push(self.take(target, *id)?),
            None => {
                let order = order_of(u64::from(bytes));
                let pfn = target.alloc(order, MigrateType::Unmovable, Fill::Undefined)?;
                message.blocks.push((pfn, order));
            }
        }
        Ok(())
    }

    /// Allocates an object.
    pub(crate) fn take(&self, target: &mut dyn Target, id: CacheId) -> Result<Object, AllocError> {
        let cpu = target.cpu().index();
        let node = self.nodes_of_cpus[cpu];
        let taken = self.state(id).take(cpu, node);
        let slab = match taken {
            Taken::FromCpu(slab) => slab,
            Taken::FromNode(slab) => {
                self.hold_list(target, id);
                slab
            }
            Taken::NeedsSlab => {
                let (order, migratetype) = {
                    let cache = self.state(id);
                    (cache.order, cache.migratetype)
                };
                let pfn = target.alloc(order, migratetype, Fill::Undefined)?;
                self.state(id).add(cpu, node, (pfn, order))
            }
        };
        Ok(Object { cache: id.0, slab })
    }

    /// Frees an object.
    pub(crate) fn give(&self, target: &mut dyn Target, object: Object) {
        let id = CacheId(object.cache);
        let given = self.state(id).give(target.cpu().index(), object.slab);
        if given.takes_list_lock {
            self.hold_list(target, id);
        }
        given.emptied.into_iter().for_each(|block| target.free(block));
    }

    /// Frees all blocks and objects of a message.
    pub(crate) fn release(&self, target: &mut dyn Target, message: Message) {
        message.objects.into_iter().for_each(|object| self.give(target, object));
        message.blocks.into_iter().for_each(|block| target.free(block));
    }

    /// Sets the number of workers that use these caches. Each worker that uses the caches calls `leave` once.
    pub(crate) fn used_by(self, workers: usize) -> Self {
        Self { users: AtomicUsize::new(workers), ..self }
    }

    /// Records that a worker needs the slab caches no more. The last worker to leave gives all empty slabs
    /// back to the allocator.
    pub(crate) fn leave(&self, target: &mut dyn Target) {
        if self.users.fetch_sub(1, AcqRel) == 1 {
            self.shrink(target);
        }
    }

    fn shrink(&self, target: &mut dyn Target) {
        let mut empty: Vec<Block> = Vec::new();
        (0..self.caches.len()).for_each(|id| empty.append(&mut self.state(CacheId(id as u16)).shrink()));
        empty.into_iter().for_each(|block| target.free(block));
    }

    fn hold_list(&self, target: &mut dyn Target, id: CacheId) {
        locked(target, self.locks[usize::from(id.0)], Hold::Exclusive, |target| {
            target.compute(self.list_ns);
        });
    }

    fn state(&self, id: CacheId) -> MutexGuard<'_, Cache> {
        // The state of a cache is valid even if the mutex is poisoned, because the bookkeeping never panics
        // in the middle of a change.
        self.caches[usize::from(id.0)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the size of objects in the cache that serves requests of `bytes` bytes: 96, 192, or a power of two
/// from 8 on.
fn kmalloc_size(bytes: u32) -> u32 {
    match bytes {
        65..=96 => 96,
        129..=192 => 192,
        _ => bytes.max(8).checked_next_power_of_two().unwrap_or(u32::MAX),
    }
}
