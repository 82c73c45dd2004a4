//! A task's private state. Operations of the engine take a task's private state as an argument, so the engine
//! needs no thread-local storage.

use alloc::sync::Arc;
use alloc::vec::Vec;

use pageset_core::{CpuId, Order, Pfn};

use crate::area::{Area, AreaMap};
use crate::counts::Counts;
use crate::lru::LruBatch;
use crate::magazine::Magazine;
use crate::prefault::Prefault;
use crate::stats::Stats;

/// The private state of a task.
pub(crate) struct Local {
    pub(crate) cpu: CpuId,
    /// The task's number in the engine.
    pub(crate) slot: u32,
    /// The number of the task's own address space.
    pub(crate) home: u32,
    pub(crate) stats: Stats,
    pub(crate) deltas: Counts,
    /// The number of faults since the task last folded its counts. Strategy R3 uses this number.
    pub(crate) events: u32,
    pub(crate) areas: KnownAreas,
    pub(crate) lru: LruBatch,
    pub(crate) magazine: Magazine,
    pub(crate) prefault: Prefault,
    /// Blocks that lost their last reference during an attempt of this task's fault. After the attempt, the
    /// task waits until no task holds a translation to these blocks, and then frees the blocks.
    pub(crate) unmapped: Vec<(Pfn, Order)>,
}

impl Local {
    pub(crate) fn new(cpu: CpuId, slot: u32, home: u32) -> Self {
        Self {
            cpu,
            slot,
            home,
            stats: Stats::default(),
            deltas: Counts::default(),
            events: 0,
            areas: KnownAreas::default(),
            lru: LruBatch::default(),
            magazine: Magazine::default(),
            prefault: Prefault::NONE,
            unmapped: Vec::new(),
        }
    }
}

/// A task's own reference to the area map. With this reference, a task finds areas and writes no shared cache
/// line, not even a reference count.
#[derive(Default)]
pub(crate) struct KnownAreas {
    /// The number of the address space, and the number of this area map. `None` before the first use.
    pub(crate) version: Option<(u32, u64)>,
    pub(crate) map: Arc<AreaMap>,
    /// The index of the area that the last search found. The next search tries this area first, because
    /// consecutive faults are often in the same area.
    last: usize,
}

impl KnownAreas {
    /// The index of the area that contains address `va`.
    #[inline]
    pub(crate) fn find(&mut self, va: u64) -> Option<usize> {
        let is_last = self.map.areas().get(self.last).is_some_and(|area| area.range.contains(&va));
        if !is_last {
            self.last = self.map.find(va)?;
        }
        Some(self.last)
    }

    /// The area with index `index`, which a ticket holds.
    #[inline]
    pub(crate) fn area(&self, index: usize) -> &Area {
        &self.map.areas()[index]
    }
}
