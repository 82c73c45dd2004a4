//! Blocks that are pageblocks, or two of them: one bit each, and the last one that a CPU freed at hand.

use pageset_core::{CpuId, MigrateType, Order, ZoneId};

use super::refill::Needy;
use super::{BlockAllocator, WholeUse, blocks_in};
use crate::atomic::Relaxed;
use crate::cpu_lists::{CpuLists, count};
use crate::spares::{CLAIM_MIN, SPARES};
use crate::stack::BlockIndex;
use crate::state::{Phase, State};
use crate::whole_map::WholeMap;
use crate::zone::Zone;

impl BlockAllocator<'_> {
    /// The pageblock that this CPU freed last, if it is still there.
    #[inline]
    pub(super) fn take_last_spare(&self, lists: &CpuLists, migratetype: MigrateType) -> Option<BlockIndex> {
        let block = lists.spares.last();
        let hand_out = |state: State| {
            (state.phase() == Phase::Spare).then(|| state.handed(Order::PAGEBLOCK, migratetype))
        };
        self.states.get(block)?.update(hand_out).ok()?;
        Some(block)
    }

    /// Hands out a block of pageblock size or twice that.
    pub(super) fn alloc_whole(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let order = needy.wanted.order;
        loop {
            let block = if order == Order::PAGEBLOCK {
                self.take_whole(needy)?
            } else {
                self.claim_run(needy, blocks_in(order))?
            };
            if self.hand_out(block, order, needy.wanted.migratetype) {
                return Some(block);
            }
        }
    }

    /// Claimed pageblocks become one block that is in use. `false` if one of them was isolated meanwhile.
    pub(super) fn hand_out(&self, block: BlockIndex, order: Order, migratetype: MigrateType) -> bool {
        let parts = block..block + blocks_in(order);
        let hand_out = |part: BlockIndex| {
            self.turn_into(part, |state| match part == block {
                true => state.handed(order, migratetype),
                false => state.unused(Phase::Inner),
            })
        };
        let Some(isolated) = parts.clone().rev().find(|part| !hand_out(*part)) else { return true };
        parts.filter(|part| *part != isolated).for_each(|part| self.give_whole(part));
        false
    }

    /// A whole pageblock that nobody else has: one that this CPU kept, or the first of some that it takes from the map.
    pub(super) fn take_whole(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        // As one that is taken from the map.
        let to_whole = |state: State| (state.phase() == Phase::Spare).then(|| state.in_phase(Phase::Whole));
        self.take_spare(needy.lists, to_whole).or_else(|| self.claim_some(needy))
    }

    /// A pageblock that a CPU kept and whose state `change` changes.
    pub(super) fn take_spare(
        &self,
        lists: &CpuLists,
        change: impl Fn(State) -> Option<State>,
    ) -> Option<BlockIndex> {
        let take =
            |block: BlockIndex| self.states.get(block).is_some_and(|state| state.update(&change).is_ok());
        lists.spares.pop(take).or_else(|| lists.spares.take_any(take))
    }

    /// Takes pageblocks from the map: the more, the more often this CPU does so, and none that many CPUs would miss.
    pub(super) fn claim_some(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let zone = &self.zones[needy.zone.index()];
        let claim_size = &needy.lists.spares.claim_size;
        let size = claim_size.load(Relaxed);
        claim_size.store(size.saturating_mul(2).min(SPARES as u32), Relaxed);
        let near = self.search_start(needy);
        let most = zone.open_blocks(self.look_at(zone, needy.lists), needy.reserve);
        let (first, mut taken) = self.whole.claim_some(&zone.blocks, near, (size as usize).min(most))?;
        zone.remove_whole(taken.count_ones() as usize);
        count(&needy.lists.counters.claimed);
        self.look_at(zone, needy.lists);
        let block = first + taken.trailing_zeros() as usize;
        needy.lists.near.store(block as u32, Relaxed);
        taken &= taken - 1;
        while taken != 0 {
            let spare = first + taken.trailing_zeros() as usize;
            if self.turn_into(spare, |state| state.in_phase(Phase::Spare)) {
                self.keep_spare(needy.lists, spare);
            }
            taken &= taken - 1;
        }
        Some(block)
    }

    /// The pageblock at which a search of the map begins.
    fn search_start(&self, needy: Needy<'_>) -> BlockIndex {
        match self.parts.whole_use {
            WholeUse::AtHand => needy.lists.near.load(Relaxed) as usize,
            WholeUse::LowestFirst => self.zones[needy.zone.index()].blocks.start,
        }
    }

    /// Takes adjacent whole pageblocks from the map; nobody else sees them from then on.
    pub(super) fn claim_run(&self, needy: Needy<'_>, blocks: usize) -> Option<BlockIndex> {
        let zone = &self.zones[needy.zone.index()];
        if zone.open_blocks(blocks, needy.reserve) < blocks {
            return None;
        }
        let near = self.search_start(needy);
        let block = self.whole.claim(&zone.blocks, near, blocks)?;
        zone.remove_whole(blocks);
        count(&needy.lists.counters.claimed);
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
        (block..block + blocks).for_each(|part| self.note_whole(part));
    }

    /// Puts a pageblock that is in nobody's use into the map, unless it was isolated meanwhile.
    pub(super) fn give_whole(&self, block: BlockIndex) {
        if self.turn_into(block, |state| state.unused(Phase::Whole)) {
            self.publish(block, 1);
        }
    }

    /// Frees a block of pageblock size or twice that. `false` if it is no such block in use.
    pub(super) fn free_whole(&self, cpu: CpuId, zone: ZoneId, block: BlockIndex, order: Order) -> bool {
        if order == Order::PAGEBLOCK && self.free_pageblock(cpu, zone, block) {
            return true;
        }
        let is_this =
            |state: State| state.phase() == Phase::Handed && state.order() == order && !state.has_bad();
        let parts = block..block + blocks_in(order);
        let is_inner =
            |part: BlockIndex| self.states.get(part).is_some_and(|s| s.get().phase() == Phase::Inner);
        if !parts.clone().skip(1).all(is_inner) {
            self.note_damage(zone);
            return false;
        }
        let freed =
            self.states[block].update(|state| is_this(state).then(|| state.unused(Phase::Whole))).is_ok();
        if freed {
            parts.rev().for_each(|part| self.give_whole(part));
        }
        freed
    }

    /// Frees a pageblock: it is kept at hand, and the one before goes into the map; or it goes there itself.
    #[inline]
    pub(super) fn free_pageblock(&self, cpu: CpuId, zone: ZoneId, block: BlockIndex) -> bool {
        let to_spare = |state: State| state.is_pageblock_in_use().then(|| state.unused(Phase::Spare));
        if self.states[block].update(to_spare).is_err() {
            return false;
        }
        if self.parts.whole_use == WholeUse::LowestFirst {
            if self.states[block].change(Phase::Spare, Phase::Whole) {
                self.publish(block, 1);
            }
            return true;
        }
        let lists = self.lists_at(zone, cpu);
        if lists.spares.last() != block {
            let before = lists.spares.replace(0, block);
            if self.is_spare(before) {
                self.keep_spare(lists, before);
            }
        }
        true
    }

    fn is_spare(&self, block: BlockIndex) -> bool {
        self.states.get(block).is_some_and(|state| state.get().phase() == Phase::Spare)
    }

    /// Keeps a spare pageblock at hand behind the one that was freed last. If there are too many, the older half goes into the map.
    pub(super) fn keep_spare(&self, lists: &CpuLists, block: BlockIndex) {
        let zone = &self.zones[self.zone_of_block(block).index()];
        if lists.spares.kept() >= self.most_spares(zone, lists) {
            // What it knows may be old.
            let most = self.look_at(zone, lists);
            if lists.spares.kept() >= most {
                self.give_spares(lists, lists.spares.shed(most / 2));
            }
        }
        // Somebody who runs as the same CPU may have been faster.
        let before = lists.spares.push(block);
        if before != block {
            self.give_spares(lists, core::iter::once(before));
        }
    }

    /// Puts pageblocks that were kept at hand into the map, if they still are. Neighbours go together.
    pub(super) fn give_spares(&self, lists: &CpuLists, blocks: impl Iterator<Item = BlockIndex>) {
        let mut together = (0, 0);
        let put = |(word, mut bits): (usize, usize)| {
            if bits != 0 {
                self.whole.put_bits(word, bits);
                count(&lists.counters.published);
                if bits.count_ones() >= CLAIM_MIN {
                    // What this CPU used last is what it takes next: it has page tables in a host, and lines in caches.
                    lists.near.store(WholeMap::block(word, bits) as u32, Relaxed);
                }
            }
            while bits != 0 {
                self.note_whole(WholeMap::block(word, bits));
                bits &= bits - 1;
            }
        };
        for block in blocks {
            if !self.states.get(block).is_some_and(|state| state.change(Phase::Spare, Phase::Whole)) {
                continue;
            }
            self.zones[self.zone_of_block(block).index()].add_whole(1);
            let (word, bit) = WholeMap::place(block);
            if together.0 != word {
                put(core::mem::replace(&mut together, (word, 0)));
            }
            together.1 |= bit;
        }
        put(together);
    }
}

impl State {
    /// As it is while it is, or begins, a block in use.
    #[inline]
    const fn handed(self, order: Order, migratetype: MigrateType) -> Self {
        self.unused(Phase::Handed).of_order(order).of_type(migratetype)
    }
}
