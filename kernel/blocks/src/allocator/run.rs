//! Allocates exact counts of frames, from a free run that begins at any frame.

use core::ops::Range;

use pageset_core::{CpuId, PAGEBLOCK_ORDER, Pfn, Request, Watermark};

use super::needy::Highatomic;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::cpu_share::Wanted;
use crate::ids::{BlockId, FrameId};

impl<A: Access> BlockAllocator<'_, A> {
    /// Takes a run from a pageblock in part use, for a count that is smaller than a block of the request's
    /// order. Returns `None` if a short search finds no run. The caller then cuts a block of the request's
    /// order.
    pub(super) fn alloc_run(&self, cpu: CpuId, frames: usize, request: &Request) -> Option<Pfn> {
        let zone = self.home_zone(cpu, request).filter(|_| frames < FRAMES)?;
        let needy = self.needy(zone, cpu, request, Highatomic::Closed);
        let zone = &self.zones[zone.index()];
        needy.share.activity.note::<A>();
        // No watermark is checked: the pageblock's memory left the zone's count when the CPU reserved it.
        let reserved = needy.share.reservation(needy.wanted).get().map(|(block, _)| block);
        let own = reserved.filter(|block| self.is_reserved_by(cpu, *block));
        let found = own.and_then(|block| self.take_run(block, frames, needy.wanted)).or_else(|| {
            if !self.has_room(needy, request, Watermark::Low) {
                return None;
            }
            // An unsettled pageblock may have room, so this CPU settles one before it searches. Without this
            // step, the request would take a run of an emptier pageblock, or of a whole one. Measured with
            // the example `limits` and 1 GiB: 71 % of the pageblocks that the free memory would fill are
            // free, and 7 % without this step.
            self.next_unsettled(needy).into_iter().for_each(|block| self.settle(block));
            // A free run may span two blocks, so a pageblock whose largest free block is one order smaller
            // may have one, too.
            let order = request.order.index();
            (order - 1..PAGEBLOCK_ORDER).find_map(|order| {
                let block =
                    self.find_in_set(zone, needy, needy.wanted.migratetype, order, zone.blocks.start)?;
                self.take_run(block, frames, needy.wanted)
            })
        })?;
        Some(zone.pfn(found))
    }

    /// Takes a run of frames from a pageblock, whether a CPU reserves it or not.
    fn take_run(&self, block: BlockId, frames: usize, wanted: Wanted) -> Option<FrameId> {
        if !self.state(block).get().serves(wanted.migratetype) {
            return None;
        }
        let first = self.rows(block).take_run(frames, || self.note_rows(block))?;
        self.note_taken(block, frames as u32);
        if self.state(block).get().serves(wanted.migratetype) {
            self.settle(block);
            return Some(FrameId::of(block, first));
        }
        // The pageblock has gone out of service, or has another type now.
        self.put_back_run(block, first..first + frames);
        None
    }

    /// Returns frames that were just taken to their pageblock, and makes the pageblock unsettled if
    /// necessary.
    pub(super) fn put_back_run(&self, block: BlockId, mut rest: Range<usize>) {
        // Race: another CPU takes the frames as soon as they are free. So this CPU frees nothing more after
        // the last frame is free, because a further call could cut the other CPU's block.
        while !rest.is_empty()
            && let Ok((freed, _)) = self.rows(block).free_first(rest.clone())
        {
            rest.start += freed;
        }
        self.note_rows(block);
    }
}
