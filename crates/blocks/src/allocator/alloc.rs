//! What nearly every allocation is: a bit of the pageblock at hand.

use pageset_core::{
    AllocError, CpuId, MigrateType, NodeChoice, Order, PAGEBLOCK_ORDER, Pfn, Request, ZoneId,
};

use super::{BlockAllocator, FRAMES, NO_ZONE, ZoneKind};
use crate::cpu_lists::{CpuLists, Wanted};

impl BlockAllocator<'_> {
    /// Allocates a block. Of two requests at once, from the same CPU or others, each gets its own.
    ///
    /// # Errors
    /// See [`AllocError`]. A block that lies below the watermark is an error even if there are free frames.
    #[inline]
    pub fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        match self.alloc_at_hand(cpu, request) {
            Some(pfn) => Ok(pfn),
            None => self.alloc_slow(cpu, request),
        }
    }

    #[inline]
    fn alloc_at_hand(&self, cpu: CpuId, request: &Request) -> Option<Pfn> {
        let zone = self.preferred_zone(cpu, request)?;
        let lists = self.lists_at(zone, cpu);
        let frame = match request.order.index() {
            0..PAGEBLOCK_ORDER => self.take_at_hand(lists, Wanted::of(request))?,
            PAGEBLOCK_ORDER => self.take_spare(lists, request.migratetype)? * FRAMES,
            _ => return None,
        };
        Some(self.zones[zone.index()].pfn(frame))
    }

    /// The zone that such a request uses first, if that is simple to say.
    #[inline]
    pub(super) fn preferred_zone(&self, cpu: CpuId, request: &Request) -> Option<ZoneId> {
        let local = *self.nodes_of_cpus.get(cpu.index())?;
        let node = match request.nodes {
            NodeChoice::Local => local,
            NodeChoice::Prefer(node) => node,
            NodeChoice::Only(_) => return None,
        };
        if request.below.is_some() || !request.migratetype.is_mergeable() {
            return None;
        }
        let zone = *self.preferred.get(node.index() * ZoneKind::COUNT + request.highest_zone.index())?;
        (zone != NO_ZONE).then_some(zone)
    }

    /// A block from the word that the CPU's last one came from.
    #[inline]
    pub(super) fn take_at_hand(&self, lists: &CpuLists, wanted: Wanted) -> Option<usize> {
        let (block, word) = lists.cursor(wanted).get()?;
        let frame = block * FRAMES + self.free.get(block)?.take(word, wanted.order)?;
        if self.states[block].get().serves(wanted.order, wanted.migratetype) {
            return Some(frame);
        }
        // The cursor was old: the pageblock has become another's, of another order.
        self.return_frames(block, frame % FRAMES, wanted.order);
        None
    }

    /// Puts back what was taken from a pageblock that is not what it was thought to be.
    #[cold]
    pub(super) fn return_frames(&self, block: usize, frame: usize, order: Order) {
        // Nobody else can have put back what was taken here.
        let put = self.free[block].put(frame, order);
        debug_assert!(put.is_ok(), "frames that were just taken are not free");
        self.settle(block);
    }
}

impl Wanted {
    #[inline]
    pub(super) const fn of(request: &Request) -> Self {
        Self { order: request.order, migratetype: request.migratetype }
    }

    /// The type that requests of this type use if nothing else is left, next first.
    pub(super) const fn fallbacks(self) -> [MigrateType; 2] {
        match self.migratetype {
            MigrateType::Movable => [MigrateType::Reclaimable, MigrateType::Unmovable],
            MigrateType::Reclaimable => [MigrateType::Unmovable, MigrateType::Movable],
            _ => [MigrateType::Reclaimable, MigrateType::Movable],
        }
    }
}
