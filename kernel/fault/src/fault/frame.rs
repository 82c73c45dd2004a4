//! Allocates, clears and gives back the pages that faults map.

use pageset_core::{Order, Pfn};

use crate::frames::{FrameSource, FrameUse};
use crate::local::Local;
use crate::lru::Lru;
use crate::space::AddressSpace;
use crate::world::{Memory, World};

impl<W: World> AddressSpace<W> {
    /// Allocates a block with any contents.
    #[inline]
    pub(super) fn take_block(&self, local: &mut Local, order: Order) -> Option<Pfn> {
        let start_ns = self.clock(local);
        let pfn = if order == Order::ZERO {
            local.magazine.take(self.world().frames(), local.cpu)
        } else {
            self.world().frames().alloc(local.cpu, order, FrameUse::Anon)
        };
        local.stats.alloc_ns += self.clock(local) - start_ns;
        pfn
    }

    /// Allocates a block and clears the block. After the clear, the task will first touch page number
    /// `target` of the block.
    #[inline]
    pub(super) fn take_clear(&self, local: &mut Local, order: Order, target: u32) -> Option<Pfn> {
        if order == Order::ZERO
            && let Some(pfn) = self.engine().take_prezeroed(local)
        {
            return Some(pfn);
        }
        let pfn = self.take_block(local, order)?;
        let start_ns = self.clock(local);
        self.world().memory().clear(local.cpu, pfn, order, target);
        // Let the host prefetch the first cache lines of the magazine's next frame. The prefetch costs little
        // time, because the fault's next atomic operation must wait until the writes to the cleared page are
        // complete.
        if let Some(next) = local.magazine.peek() {
            self.world().memory().expect(local.cpu, next);
        }
        local.stats.zero_ns += self.clock(local) - start_ns;
        Some(pfn)
    }

    /// Sets the reference count of a new block to `refs`, the number of words that will map the block. Also
    /// marks the block as in use and not yet on a list.
    #[inline]
    pub(super) fn begin(&self, pfn: Pfn, order: Order, refs: u32) {
        self.engine().frames.begin(pfn, order, refs);
        Lru::<W::RawLock>::mark(self.engine().frames.frame(pfn));
    }

    /// Adds a mapped block to the task's batch for a list of pages in use.
    #[inline]
    pub(super) fn list(&self, local: &mut Local, pfn: Pfn) {
        self.engine().lru.add(&self.engine().frames, local.cpu, &mut local.lru, pfn);
    }

    /// Drops the `refs` references of a block that no word maps, and frees the block. If another task holds a
    /// temporary reference, that task frees the block later.
    pub(super) fn give_back(&self, local: &mut Local, pfn: Pfn, refs: u32) {
        if let Some(block) = self.engine().frames.put(pfn, refs) {
            // An old entry in a task's batch may already have moved the block to a list (see
            // [`lru`](crate::lru)).
            self.engine().lru.remove(&self.engine().frames, &[block]);
            self.free_unused(local, block.0, block.1);
        }
    }

    /// Frees a block that no word maps. No other task has a reference to the block.
    pub(super) fn free_unused(&self, local: &mut Local, pfn: Pfn, order: Order) {
        if self.world().frames().free(local.cpu, pfn, order).is_err() {
            local.stats.refused_frees += 1;
        }
    }
}
