//! A count of frames that is no power of two: where so many are free together, wherever they begin.

use pageset_core::{CpuId, PAGEBLOCK_ORDER, Pfn, Request, Watermark};

use super::reserve::Reserve;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::cpu_lists::Wanted;
use crate::index::BlockIndex;

/// Pageblocks of one set that are looked at: whether one of them has such a run, its set does not say.
const TRIES: usize = 4;

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
            // Among so many frames there is a whole block of this order, wherever they begin.
            let least = (frames + 1).ilog2() as usize - 1;
            let has_room = self.has_room(needy, request, Watermark::Low);
            let mut orders = if has_room { least..PAGEBLOCK_ORDER } else { 0..0 };
            orders.find_map(|order| {
                let mut near = zone.blocks.start;
                (0..TRIES).find_map(|_| {
                    let block = self.find_in_set(zone, needy.wanted.migratetype, order, near)?;
                    if block < near {
                        // From the start again.
                        return None;
                    }
                    near = block + 1;
                    self.take_run(block, frames, needy.wanted)
                })
            })
        })?;
        Some(zone.pfn(found))
    }

    /// Takes a run of frames of a pageblock, whoever reserves it.
    fn take_run(&self, block: BlockIndex, frames: usize, wanted: Wanted) -> Option<usize> {
        if !self.states[block].get().serves(wanted.migratetype) {
            return None;
        }
        let Some(first) = self.rows[block].take_run(frames) else {
            // Some of its frames may have been taken until one was found in use: whoever looked meanwhile saw less than there is.
            self.note_rows(block);
            return None;
        };
        self.note_taken(block, frames as u32);
        if self.states[block].get().serves(wanted.migratetype) {
            self.settle(block);
            return Some(block * FRAMES + first);
        }
        // It went out of service, or is for another type now.
        let mut rest = first..first + frames;
        while let Some((freed, left)) =
            self.rows[block].free_first(rest.clone()).ok().filter(|_| !rest.is_empty())
        {
            self.note_free(block, rest.start / crate::row::ROW_FRAMES, left);
            rest.start += freed;
        }
        self.settle(block);
        None
    }
}
