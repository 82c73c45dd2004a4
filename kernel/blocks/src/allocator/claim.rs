//! Claims whole pageblocks. The caller opens the claimed pageblocks, hands them out as blocks of one or two
//! pageblocks, or keeps them in a stock.

use pageset_core::{CpuId, MigrateType, Order, ZoneId};

use super::needy::{Highatomic, Needy};
use super::sets::Members;
use super::{BlockAllocator, blocks_in};
use crate::access::Access;
use crate::cpu_share::count;
use crate::ids::{BlockId, each};
use crate::index::Several;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Allocates a block of one or two pageblocks.
    pub(super) fn alloc_whole(&self, needy: Needy<'_>) -> Option<BlockId> {
        let order = needy.wanted.order;
        loop {
            let block =
                if order == Order::PAGEBLOCK { self.claim_whole(needy)? } else { self.claim_pair(needy)? };
            if self.hand_out(block, order, needy.wanted.migratetype) {
                return Some(block);
            }
        }
    }

    /// Turns claimed pageblocks into one block in use. Returns `false` if another CPU isolated one of the
    /// pageblocks meanwhile.
    pub(super) fn hand_out(&self, block: BlockId, order: Order, migratetype: MigrateType) -> bool {
        let parts = block..block.after(blocks_in(order));
        let hand_out = |part: BlockId| {
            self.turn_into(part, |state| match part == block {
                true => state.closed_as(Phase::Block).of_block(order).of_type(migratetype),
                false => state.closed_as(Phase::SecondHalf),
            })
        };
        let Some(isolated) = each(&parts).rev().find(|part| !hand_out(*part)) else { return true };
        each(&parts).filter(|part| *part != isolated).for_each(|part| self.give_whole(part));
        false
    }

    /// Claims a whole pageblock by removing it from the set. No other CPU can use the pageblock from then on.
    pub(super) fn claim_whole(&self, needy: Needy<'_>) -> Option<BlockId> {
        self.claim_several(needy, 1).first()
    }

    /// Claims up to `limit` whole pageblocks whose bits lie in one half of a word.
    pub(super) fn claim_several(&self, needy: Needy<'_>, limit: usize) -> Several {
        let zone = &self.zones[needy.zone.index()];
        let limit = zone.open_blocks(limit, needy.highatomic);
        let whole = self.set(Members::Whole);
        while limit > 0
            && let Some(first) = self.find_whole(needy)
        {
            let taken = whole.take_from(first, zone.blocks.end, limit);
            if taken.len() > 0 {
                self.note_claimed(needy, first, taken.len());
                // The last claimed pageblock may lie in the unit after the unit of the first.
                taken.last().into_iter().for_each(|block| self.note_use(needy.wanted.migratetype, block));
                return taken;
            }
        }
        Several::NONE
    }

    /// Claims two adjacent whole pageblocks.
    fn claim_pair(&self, needy: Needy<'_>) -> Option<BlockId> {
        let zone = &self.zones[needy.zone.index()];
        if !zone.may_claim(2, needy.highatomic) {
            return None;
        }
        let (whole, pairs) = (self.set(Members::Whole), self.set(Members::Pairs));
        loop {
            let first = pairs.find(&zone.blocks, BlockId(self.whole_start(needy).0 & !1))?;
            let claimed = whole.remove_pair(first);
            pairs.remove(first);
            if claimed {
                self.note_claimed(needy, first, 2);
                return Some(first);
            }
            if whole.has_pair(first) {
                // Race: just before this CPU removed the pair from the set, another CPU made the pair whole
                // again and added it. This CPU's removal would hide the new pair, so this CPU adds the pair
                // again.
                pairs.add(first);
            }
        }
    }

    /// Lowers the count of whole pageblocks by the claimed ones. The CPU's next search begins at the first
    /// claimed pageblock. The unit of the first claimed pageblock may become tainted.
    fn note_claimed(&self, needy: Needy<'_>, first: BlockId, blocks: usize) {
        self.zones[needy.zone.index()].remove_whole::<A>(blocks);
        count::<A>(&needy.share.counters.claimed);
        needy.share.set_near(first);
        self.note_use(needy.wanted.migratetype, first);
    }

    /// The pageblock at which a search for free blocks begins.
    pub(super) fn search_start(&self, needy: Needy<'_>) -> BlockId {
        if self.steers() { needy.share.near() } else { self.zones[needy.zone.index()].blocks.start }
    }

    /// The pageblock at which a search for whole pageblocks begins.
    fn whole_start(&self, needy: Needy<'_>) -> BlockId {
        let start = self.zones[needy.zone.index()].blocks.start;
        if self.steers() { self.find_whole(needy).unwrap_or(start) } else { start }
    }

    /// Opens a claimed whole pageblock, with all of its frames free. Returns `false` in the cases of
    /// [`turn_into`](Self::turn_into).
    pub(super) fn open(&self, block: BlockId, open: State) -> bool {
        // No row has a free frame yet, so no other CPU takes from the open pageblock.
        let opened = self.turn_into(block, |_| open);
        if opened {
            self.rows(block).open();
            if open.owner().is_none() {
                // The caller may fail to take a frame of the pageblock. So the set of unsettled pageblocks
                // gets the pageblock, where searches find it.
                self.set(Members::Unsettled).add(block);
            }
            let now = self.state(block).get();
            if now.is_isolated() {
                self.unreserve(block, None, |_| true);
            } else if open.owner().is_some() && now.owner().is_none() {
                // Race: another CPU ended the reservation, or took the pageblock out of service and back. The
                // other CPU settled the pageblock before all rows were free. So this CPU makes the pageblock
                // unsettled.
                self.note_rows(block);
            }
        }
        opened
    }

    /// Opens a pageblock for requests of a type, if it is whole. Returns `false` if another CPU isolated it
    /// meanwhile.
    pub(super) fn open_if_whole(&self, block: BlockId, migratetype: MigrateType) -> bool {
        self.give_stock_with(block);
        !self.claim_whole_at(self.zone_at(block), block, 1) || self.open(block, State::open(migratetype))
    }

    /// Frees a block of one or two pageblocks. Returns `false` if no such block is in use.
    pub(super) fn free_whole(&self, cpu: CpuId, zone: ZoneId, block: BlockId, order: Order) -> bool {
        if order == Order::PAGEBLOCK && self.free_to_stock(cpu, zone, block) {
            return true;
        }
        let parts = block..block.after(blocks_in(order));
        let is_second =
            |part: BlockId| self.states.get(part.0).is_some_and(|s| s.get().phase() == Phase::SecondHalf);
        if !each(&parts).skip(1).all(is_second) {
            self.note_damage(zone);
            return false;
        }
        let to_whole = |state: State| state.is_block_of(order).then(|| state.closed_as(Phase::Changing));
        let freed = self.state(block).update::<A>(to_whole).is_ok();
        if freed {
            self.share_at(zone, cpu).set_near(block);
            each(&parts).rev().for_each(|part| self.give_whole(part));
        }
        freed
    }
}

impl Zone {
    /// Whether a request may claim this many whole pageblocks. The pageblocks of the highatomic reserve count
    /// only if `highatomic` is open.
    fn may_claim(&self, blocks: usize, highatomic: Highatomic) -> bool {
        self.open_blocks(blocks, highatomic) >= blocks
    }
}
