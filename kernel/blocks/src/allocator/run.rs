//! A count of frames that is no power of two: where so many are free together, wherever they begin.

use core::ops::Range;

use pageset_core::{CpuId, PAGEBLOCK_ORDER, Pfn, Request, Watermark};

use super::reserve::Reserve;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::cpu_lists::Wanted;
use crate::index::BlockIndex;
use crate::row::ROW_FRAMES;

impl<A: Access> BlockAllocator<'_, A> {
    /// Frames of a pageblock in part use that lie together, fewer than the request's order has. `None` if none was found soon: then a
    /// larger block is cut.
    pub(super) fn alloc_run(&self, cpu: CpuId, frames: usize, request: &Request) -> Option<Pfn> {
        let zone = self.home_zone(cpu, request).filter(|_| frames < FRAMES)?;
        let needy = self.needy(zone, cpu, request, Reserve::Closed);
        let zone = &self.zones[zone.index()];
        needy.lists.activity.note::<A>();
        // The memory left the zone when the CPU reserved the pageblock, so no watermark counts there.
        let reserved = needy.lists.at_hand(needy.wanted).get().map(|(block, _)| block);
        let at_hand = reserved
            .filter(|block| self.states.get(*block).is_some_and(|state| state.get().is_reserved_by(cpu)));
        let found = at_hand.and_then(|block| self.take_run(block, frames, needy.wanted)).or_else(|| {
            if !self.has_room(needy, request, Watermark::Low) {
                return None;
            }
            // A pageblock whose largest free block has the order below may have such a run, too: one is tried.
            let order = request.order.index();
            (order - 1..PAGEBLOCK_ORDER).find_map(|order| {
                let block =
                    self.find_in_set(zone, needy, needy.wanted.migratetype, order, zone.blocks.start)?;
                self.take_run(block, frames, needy.wanted)
            })
        })?;
        Some(zone.pfn(found))
    }

    /// Takes a run of frames of a pageblock, whoever reserves it.
    fn take_run(&self, block: BlockIndex, frames: usize, wanted: Wanted) -> Option<usize> {
        if !self.states[block].get().serves(wanted.migratetype) {
            return None;
        }
        let first = self.rows[block].take_run(frames, || self.note_rows(block))?;
        self.note_taken(block, frames as u32);
        if self.states[block].get().serves(wanted.migratetype) {
            self.settle(block);
            return Some(block * FRAMES + first);
        }
        // It went out of service, or is for another type now.
        self.put_back_run(block, first..first + frames);
        self.settle(block);
        None
    }

    /// Puts back frames of a pageblock that were just taken.
    pub(super) fn put_back_run(&self, block: BlockIndex, mut rest: Range<usize>) {
        while let Some((freed, left)) =
            self.rows[block].free_first(rest.clone()).ok().filter(|_| !rest.is_empty())
        {
            self.note_free(block, rest.start / ROW_FRAMES, left);
            rest.start += freed;
        }
    }
}
