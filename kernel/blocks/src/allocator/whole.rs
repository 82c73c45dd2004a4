//! Blocks that are pageblocks, or two of them.

use pageset_core::{CpuId, MigrateType, Order, PAGEBLOCK_ORDER, ZoneId};

use super::refill::Needy;
use super::reserve::Reserve;
use super::{BlockAllocator, blocks_in};
use crate::access::Access;
use crate::atomic::Relaxed;
use crate::cpu_lists::{TYPES, count};
use crate::index::{BlockIndex, Several};
use crate::state::{Phase, State};
use crate::zone::Zone;

/// Which whole pageblock a CPU uses next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WholeUse {
    /// One near that which it used or freed last: CPUs stay apart.
    #[default]
    AtHand,
    /// The lowest that is free, whoever freed it: what lies at the end stays free. For hosts that return memory from there.
    LowestFirst,
}

/// The number of the set of whole pageblocks: those that anybody may take.
pub(super) const WHOLE: usize = TYPES * PAGEBLOCK_ORDER;
/// The set of pairs of whole pageblocks, by the first one of each. It may have pairs that are gone.
pub(super) const PAIRS: usize = WHOLE + 1;
/// The set of pageblocks whose free frames the zone has counted, and to which frames came back since.
pub(super) const UNCOUNTED: usize = WHOLE + 2;
/// The set of units of 1 GiB that may hold what cannot be moved, by their first pageblocks.
pub(super) const TAINTED: usize = WHOLE + 3;
/// How many sets there are.
pub(super) const SETS: usize = WHOLE + 4;

impl<A: Access> BlockAllocator<'_, A> {
    /// The same allocator with another rule for whole pageblocks. Default: [`WholeUse::AtHand`].
    #[must_use]
    pub fn with_whole_use(mut self, rule: WholeUse) -> Self {
        self.whole_use = rule;
        self
    }

    /// Hands out a block of pageblock size or twice that.
    pub(super) fn alloc_whole(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let order = needy.wanted.order;
        loop {
            let block =
                if order == Order::PAGEBLOCK { self.claim_whole(needy)? } else { self.claim_pair(needy)? };
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
                true => state.unused(Phase::Block).of_block(order).of_type(migratetype),
                false => state.unused(Phase::SecondHalf),
            })
        };
        let Some(isolated) = parts.clone().rev().find(|part| !hand_out(*part)) else { return true };
        parts.filter(|part| *part != isolated).for_each(|part| self.give_whole(part));
        false
    }

    /// Takes a whole pageblock; nobody else has it from then on.
    pub(super) fn claim_whole(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let zone = &self.zones[needy.zone.index()];
        if !zone.may_claim(1, needy.reserve) {
            return None;
        }
        let whole = self.index.set::<A>(WHOLE);
        loop {
            let block = self.find_whole(needy)?;
            if whole.remove(block) {
                self.note_claimed(needy, block, 1);
                return Some(block);
            }
        }
    }

    /// Takes up to `limit` whole pageblocks that lie near each other.
    pub(super) fn claim_several(&self, needy: Needy<'_>, limit: usize) -> Several {
        let zone = &self.zones[needy.zone.index()];
        let limit = limit.min(zone.open_blocks(limit, needy.reserve));
        let taken = self.index.set::<A>(WHOLE).take_near(&zone.blocks, self.whole_start(needy), limit);
        if let Some(first) = taken.first() {
            self.note_claimed(needy, first, taken.len());
        }
        taken
    }

    /// Lets everybody have some whole pageblocks.
    pub(super) fn publish_several(&self, zone: &Zone, blocks: Several) {
        if blocks.first().is_none() {
            return;
        }
        zone.add_whole::<A>(blocks.len());
        let whole = self.index.set::<A>(WHOLE);
        whole.add_several(blocks);
        self.index.set::<A>(PAIRS).add_several(whole.pairs_around(blocks));
        blocks.filter(|block| self.states[*block].get().is_isolated()).for_each(|block| self.withdraw(block));
    }

    /// Takes two whole pageblocks that lie together.
    fn claim_pair(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let zone = &self.zones[needy.zone.index()];
        if !zone.may_claim(2, needy.reserve) {
            return None;
        }
        let (whole, pairs) = (self.index.set::<A>(WHOLE), self.index.set::<A>(PAIRS));
        loop {
            let first = pairs.find(&zone.blocks, self.whole_start(needy) & !1)?;
            let claimed = whole.remove_pair(first);
            pairs.remove(first);
            if claimed {
                self.note_claimed(needy, first, 2);
                return Some(first);
            }
            if whole.has_pair(first) {
                // Somebody put it there meanwhile, perhaps before it was removed.
                pairs.add(first);
            }
        }
    }

    fn note_claimed(&self, needy: Needy<'_>, block: BlockIndex, blocks: usize) {
        self.zones[needy.zone.index()].remove_whole::<A>(blocks);
        count::<A>(&needy.lists.counters.claimed);
        needy.lists.near.store(block as u32, Relaxed);
        self.note_use(needy, block);
    }

    /// The pageblock at which a search for free blocks begins.
    pub(super) fn search_start(&self, needy: Needy<'_>) -> BlockIndex {
        match self.whole_use {
            WholeUse::AtHand => needy.lists.near.load(Relaxed) as usize,
            WholeUse::LowestFirst => self.zones[needy.zone.index()].blocks.start,
        }
    }

    /// The pageblock at which a search for whole pageblocks begins.
    fn whole_start(&self, needy: Needy<'_>) -> BlockIndex {
        let start = self.zones[needy.zone.index()].blocks.start;
        match self.whole_use {
            WholeUse::AtHand => self.find_whole(needy).unwrap_or(start),
            WholeUse::LowestFirst => start,
        }
    }

    /// Takes these whole pageblocks, if all of them are there.
    pub(super) fn claim_whole_at(&self, zone: &Zone, block: BlockIndex, blocks: usize) -> bool {
        let whole = self.index.set::<A>(WHOLE);
        let claimed = if blocks == 2 { whole.remove_pair(block) } else { whole.remove(block) };
        if claimed {
            zone.remove_whole::<A>(blocks);
        }
        claimed
    }

    /// Lets everybody have a whole pageblock.
    pub(super) fn publish(&self, block: BlockIndex) {
        self.zone_at(block).add_whole::<A>(1);
        self.add_to_whole(block);
        if self.states[block].get().is_isolated() {
            self.withdraw(block);
        }
    }

    /// Adds a pageblock to those that anybody may take; who counts it does so apart.
    pub(super) fn add_to_whole(&self, block: BlockIndex) {
        let whole = self.index.set::<A>(WHOLE);
        whole.add(block);
        let first = block & !1;
        if whole.has_pair(first) {
            self.index.set::<A>(PAIRS).add(first);
        }
    }

    /// Whether everybody may have it as a whole.
    pub(super) fn is_published(&self, block: BlockIndex) -> bool {
        self.index.set::<A>(WHOLE).has(block)
    }

    /// A pageblock that the caller has for itself is whole, and everybody's unless it is isolated.
    pub(super) fn give_whole(&self, block: BlockIndex) {
        if self.turn_into(block, |state| state.unused(Phase::Whole)) {
            self.publish(block);
        }
    }

    /// Frees a block of pageblock size or twice that. `false` if it is no such block in use.
    pub(super) fn free_whole(&self, cpu: CpuId, zone: ZoneId, block: BlockIndex, order: Order) -> bool {
        if order == Order::PAGEBLOCK && self.free_to_spare(self.lists_at(zone, cpu), block) {
            return true;
        }
        let parts = block..block + blocks_in(order);
        let is_second =
            |part: BlockIndex| self.states.get(part).is_some_and(|s| s.get().phase() == Phase::SecondHalf);
        if !parts.clone().skip(1).all(is_second) {
            self.note_damage(zone);
            return false;
        }
        let to_whole = |state: State| state.is_block_of(order).then(|| state.unused(Phase::Changing));
        let freed = self.states[block].update::<A>(to_whole).is_ok();
        if freed {
            self.lists_at(zone, cpu).near.store(block as u32, Relaxed);
            parts.rev().for_each(|part| self.give_whole(part));
        }
        freed
    }

    /// A pageblock that the caller has for itself becomes what `change` says. `false` if it was isolated meanwhile: then it is whole and
    /// out of service, and not the caller's any more. `false` too if somebody uses it: a table is damaged.
    pub(super) fn turn_into(&self, block: BlockIndex, change: impl Fn(State) -> State) -> bool {
        let is_ours =
            |state: State| matches!(state.phase(), Phase::Whole | Phase::Changing | Phase::SecondHalf);
        let change = |state: State| (is_ours(state) && !state.is_isolated()).then(|| change(state));
        let park = |state: State| state.is_isolated().then(|| state.unused(Phase::Parked));
        loop {
            let Err(found) = self.states[block].update::<A>(change) else { return true };
            if !is_ours(found) {
                self.note_damage(self.zone_of_block(block));
                return false;
            }
            if self.states[block].update::<A>(park).is_ok() {
                return false;
            }
            // It came back into service meanwhile.
        }
    }

    /// A whole pageblock that the caller has for itself is open, and all of its frames are free. `false` as for [`turn_into`](Self::turn_into).
    pub(super) fn open(&self, block: BlockIndex, open: State) -> bool {
        // While its rows are withheld, nobody takes from it.
        let opened = self.turn_into(block, |_| open);
        if opened {
            self.rows[block].open();
            let now = self.states[block].get();
            if now.is_isolated() {
                self.unreserve(block, |_| true);
            } else if open.owner().is_some() && now.owner().is_none() {
                // It went out of service and came back, or somebody drained this CPU: whoever looked at it then did not see all rows.
                self.note_rows(block);
            }
        }
        opened
    }

    /// Nobody can take an isolated pageblock as a whole from here on.
    #[cold]
    pub(super) fn withdraw(&self, block: BlockIndex) {
        if self.claim_whole_at(self.zone_at(block), block, 1) {
            self.give_whole(block);
        }
    }
}

impl Zone {
    /// Whether a request may take so many whole pageblocks: what is reserved for others stays.
    fn may_claim(&self, blocks: usize, reserve: Reserve) -> bool {
        self.open_blocks(blocks, reserve) >= blocks
    }
}
