//! A whole pageblock that each CPU has at hand: the one of that size that it freed last, for its next request.
//!
//! Its state says that it is one, and the CPU's list which one that is. Who takes it changes the state, so that one gets it. The list is
//! a hint, which may be old. Whoever removes the hint makes what it names whole, unless it takes it. So none is forgotten.

use pageset_core::{CpuId, MigrateType, Order, ZoneId};

use super::{BlockAllocator, WholeUse};
use crate::atomic::{Relaxed, SeqCst};
use crate::cpu_lists::CpuLists;
use crate::index::BlockIndex;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl BlockAllocator<'_> {
    /// Frees a block of a pageblock's size, and keeps it for this CPU. `false` if that has another one, or if it is no such block.
    pub(super) fn free_to_spare(&self, lists: &CpuLists, block: BlockIndex) -> bool {
        if self.whole_use != WholeUse::AtHand || lists.spare.load(Relaxed) != 0 {
            return false;
        }
        let to_spare = |state: State| {
            let is_block = state.is_block_of(Order::PAGEBLOCK) && !state.is_isolated();
            is_block.then(|| state.unused(Phase::Spare))
        };
        let is_spare = self.states[block].update(to_spare).is_ok();
        if is_spare && let Some(before) = lists.spare.swap(block as u32 + 1, SeqCst).checked_sub(1) {
            // Of another thread that runs as the same CPU.
            self.give_spare(before as usize);
        }
        is_spare
    }

    /// The CPU's spare pageblock is a block in use from here on.
    pub(super) fn take_spare(
        &self,
        zone: ZoneId,
        cpu: CpuId,
        migratetype: MigrateType,
    ) -> Option<BlockIndex> {
        let block = self.remove_spare(self.lists_at(zone, cpu))?;
        let to_block = |state: State| {
            let is_there = state.phase() == Phase::Spare && !state.is_isolated();
            is_there.then(|| state.unused(Phase::Block).of_type(migratetype))
        };
        if self.states[block].update(to_block).is_ok() {
            return Some(block);
        }
        self.give_spare(block);
        None
    }

    fn remove_spare(&self, lists: &CpuLists) -> Option<BlockIndex> {
        if lists.spare.load(Relaxed) == 0 {
            return None;
        }
        let block = lists.spare.swap(0, SeqCst).checked_sub(1)? as usize;
        (block < self.states.len()).then_some(block)
    }

    /// Lets everybody have a pageblock, if it is a CPU's spare one.
    pub(super) fn give_spare(&self, block: BlockIndex) {
        if self.states[block].change(Phase::Spare, Phase::Changing) {
            self.give_whole(block);
        }
    }

    /// A CPU keeps no spare pageblock from here on.
    pub(super) fn give_spare_of(&self, lists: &CpuLists) {
        self.remove_spare(lists).into_iter().for_each(|block| self.give_spare(block));
    }

    /// No CPU keeps a spare pageblock of this zone from here on. O(CPUs).
    pub(super) fn give_spares(&self, zone: &Zone) {
        self.lists_in(zone.id).for_each(|lists| self.give_spare_of(lists));
    }

    /// Whether a CPU has this pageblock at hand as its spare one.
    pub(super) fn is_spare_of_any(&self, zone: ZoneId, block: BlockIndex) -> bool {
        self.lists_in(zone).any(|lists| lists.spare.load(Relaxed) == block as u32 + 1)
    }
}
