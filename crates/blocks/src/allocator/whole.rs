//! Blocks that are pageblocks, or two of them: one bit each, and the last one that a CPU freed at hand.

use pageset_core::{CpuId, MigrateType, Order, ZoneId};

use super::refill::Needy;
use super::{BlockAllocator, blocks_in};
use crate::atomic::Relaxed;
use crate::cpu_lists::{CpuLists, count};
use crate::stack::BlockIndex;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl BlockAllocator<'_> {
    /// The pageblock that this CPU freed last, if it is still there.
    #[inline]
    pub(super) fn take_spare(&self, lists: &CpuLists, migratetype: MigrateType) -> Option<BlockIndex> {
        let block = lists.spare.load(Relaxed) as usize;
        let hand_out = |state: State| {
            (state.phase() == Phase::Spare).then(|| state.handed(Order::PAGEBLOCK, migratetype))
        };
        self.states.get(block)?.update(hand_out).ok()?;
        Some(block)
    }

    /// Hands out a block of pageblock size or twice that.
    pub(super) fn alloc_whole(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let order = needy.wanted.order;
        let blocks = blocks_in(order);
        let block = self.claim_whole(needy, blocks)?;
        self.hand_out(block, order, needy.wanted.migratetype);
        count(&needy.lists.counters.claimed_whole);
        Some(block)
    }

    /// Claimed pageblocks become one block that is in use.
    pub(super) fn hand_out(&self, block: BlockIndex, order: Order, migratetype: MigrateType) {
        for inner in block + 1..block + blocks_in(order) {
            self.states[inner].update(|state| Some(state.unused(Phase::Inner))).ok();
        }
        self.states[block].update(|state| Some(state.handed(order, migratetype))).ok();
    }

    /// Takes whole pageblocks from the map; nobody else sees them from then on.
    pub(super) fn claim_whole(&self, needy: Needy<'_>, blocks: usize) -> Option<BlockIndex> {
        let zone = &self.zones[needy.zone.index()];
        if zone.whole_blocks() < blocks {
            return None;
        }
        let near = needy.lists.near.load(Relaxed) as usize;
        let block = self.whole.claim(&zone.blocks, near, blocks)?;
        zone.remove_whole(blocks);
        needy.lists.near.store(block as u32, Relaxed);
        Some(block)
    }

    /// Takes these whole pageblocks from the map, if all of them are there.
    pub(super) fn claim_whole_at(&self, zone: &Zone, block: BlockIndex, blocks: usize) -> bool {
        let claimed = self.whole.claim_at(block, blocks);
        if claimed {
            zone.remove_whole(blocks);
        }
        claimed
    }

    /// Puts whole pageblocks into the map.
    pub(super) fn publish(&self, block: BlockIndex, blocks: usize) {
        self.zones[self.zone_of_block(block).index()].add_whole(blocks);
        self.whole.put(block, blocks);
    }

    /// Frees a block of pageblock size or twice that. `false` if it is no such block in use.
    pub(super) fn free_whole(&self, cpu: CpuId, zone: ZoneId, block: BlockIndex, order: Order) -> bool {
        if order == Order::PAGEBLOCK {
            return self.free_pageblock(cpu, zone, block);
        }
        let is_this = |state: State| state.phase() == Phase::Handed && state.order() == order;
        let freed =
            self.states[block].update(|state| is_this(state).then(|| state.unused(Phase::Changing))).is_ok();
        if freed {
            for part in (block..block + blocks_in(order)).rev() {
                self.states[part].update(|state| Some(state.unused(Phase::Whole))).ok();
            }
            self.publish(block, blocks_in(order));
        }
        freed
    }

    /// Frees a pageblock: it is kept at hand, and the one before goes into the map.
    #[inline]
    pub(super) fn free_pageblock(&self, cpu: CpuId, zone: ZoneId, block: BlockIndex) -> bool {
        let is_this = |state: State| state.phase() == Phase::Handed && state.order() == Order::PAGEBLOCK;
        if self.states[block].update(|state| is_this(state).then(|| state.unused(Phase::Spare))).is_err() {
            return false;
        }
        if !self.is_known(cpu) {
            self.give_spare(block);
            return true;
        }
        let spare = &self.lists_at(zone, cpu).spare;
        if spare.load(Relaxed) as usize != block {
            self.give_spare(spare.swap(block as u32, Relaxed) as usize);
        }
        true
    }

    /// Puts a pageblock that was kept at hand into the map, if it is one.
    pub(super) fn give_spare(&self, block: BlockIndex) {
        if self.states.get(block).is_some_and(|state| state.change(Phase::Spare, Phase::Whole)) {
            self.publish(block, 1);
        }
    }

    /// Puts the pageblock that a CPU keeps at hand into the map.
    pub(super) fn give_spare_of(&self, zone: ZoneId, cpu: CpuId) {
        self.give_spare(self.lists_at(zone, cpu).spare.load(Relaxed) as usize);
    }
}

impl State {
    /// As it is while it is, or begins, a block in use.
    #[inline]
    const fn handed(self, order: Order, migratetype: MigrateType) -> Self {
        self.unused(Phase::Handed).of_order(order).of_type(migratetype)
    }
}
