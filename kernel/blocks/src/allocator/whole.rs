//! Whole pageblocks, which any CPU may claim.

use pageset_core::{CpuId, Order};

use super::BlockAllocator;
use super::sets::Members;
use crate::access::Access;
use crate::cpu_share::count;
use crate::ids::BlockId;
use crate::index::Several;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Returns some whole pageblocks to the zone.
    #[inline(never)]
    pub(super) fn publish_several(&self, zone: &Zone, blocks: Several) {
        if blocks.first().is_none() {
            return;
        }
        zone.add_whole::<A>(blocks.len());
        count::<A>(&self.share_at(zone.id, CpuId(0)).counters.published);
        let whole = self.set(Members::Whole);
        whole.add_several(blocks);
        self.set(Members::Pairs).add_several(whole.pairs_around(blocks));
        // The bits of these pageblocks lie in one word, so the pageblocks belong to two units at most.
        blocks.first().into_iter().chain(blocks.last()).for_each(|block| self.note_unit(zone, block));
        blocks.filter(|block| self.state(*block).get().is_isolated()).for_each(|block| self.withdraw(block));
    }

    /// Claims one or two pageblocks from `block` on, if all are in the set of whole pageblocks.
    pub(super) fn claim_whole_at(&self, zone: &Zone, block: BlockId, blocks: usize) -> bool {
        let whole = self.set(Members::Whole);
        let claimed = if blocks == 2 { whole.remove_pair(block) } else { whole.remove(block) };
        if claimed {
            zone.remove_whole::<A>(blocks);
            count::<A>(&self.share_at(zone.id, CpuId(0)).counters.claimed);
        }
        claimed
    }

    /// Returns a whole pageblock to the zone.
    pub(super) fn publish(&self, block: BlockId) {
        self.publish_several(self.zone_at(block), Several::of(block));
    }

    /// Whether the pageblock is in the set of whole pageblocks, so that any CPU may claim it.
    pub(super) fn is_published(&self, block: BlockId) -> bool {
        self.set(Members::Whole).has(block)
    }

    /// Gives a claimed pageblock the phase `Whole`, and returns it to the zone. An isolated pageblock stays
    /// out of service instead.
    pub(super) fn give_whole(&self, block: BlockId) {
        if self.make_whole(block) {
            self.publish(block);
        }
    }

    /// Turns a block in use of order 9 into a whole pageblock. The caller then owns the pageblock, as after a
    /// claim. Returns `false` if no such block is in use and in service.
    pub(super) fn end_block(&self, block: BlockId) -> bool {
        let to_whole = |state: State| {
            let is_block = state.is_block_of(Order::PAGEBLOCK) && !state.is_isolated();
            is_block.then(|| state.closed_as(Phase::Whole))
        };
        self.state(block).update::<A>(to_whole).is_ok()
    }

    /// Gives a claimed pageblock the phase `Whole`. Returns `false` for an isolated pageblock, which stays
    /// out of service.
    pub(super) fn make_whole(&self, block: BlockId) -> bool {
        self.turn_into(block, |state| state.closed_as(Phase::Whole))
    }

    /// Changes the state of a claimed pageblock by `change`. Returns `false` if another CPU isolated the
    /// pageblock meanwhile. The pageblock is then parked, and the caller must not use it. Also returns
    /// `false` if, by a damaged table, no CPU claimed the pageblock.
    pub(super) fn turn_into(&self, block: BlockId, change: impl Fn(State) -> State) -> bool {
        let is_ours =
            |state: State| matches!(state.phase(), Phase::Whole | Phase::Changing | Phase::SecondHalf);
        let change = |state: State| (is_ours(state) && !state.is_isolated()).then(|| change(state));
        let park = |state: State| state.is_isolated().then(|| state.closed_as(Phase::Parked));
        loop {
            let Err(found) = self.state(block).update::<A>(change) else { return true };
            if !is_ours(found) {
                self.note_damage(self.zone_of_block(block));
                return false;
            }
            if self.state(block).update::<A>(park).is_ok() {
                return false;
            }
            // Race: another CPU has brought the pageblock back into service between the two exchanges. So try
            // again.
        }
    }

    /// Removes an isolated pageblock from the set of whole pageblocks.
    #[cold]
    pub(super) fn withdraw(&self, block: BlockId) {
        if self.claim_whole_at(self.zone_at(block), block, 1) {
            self.give_whole(block);
        }
    }
}
