//! A whole pageblock that each CPU has at hand: the one of that size that it freed last, for its next request.
//!
//! Its state says that it is a spare one. A CPU that takes it changes the state by exchange, so one gets it. The CPU's list names it, also
//! while it is in use. So a CPU that frees and takes the same one changes nothing else.
//!
//! # Which operations may race, who loses, and why that is safe
//!
//! A CPU makes a pageblock its spare one, while another thread that runs as the same CPU names a different one. Each changes a state
//! first. Then it reads the list, and names its own there if that is not there. The second one to write the list finds the first one's
//! there, and makes that whole if it is a spare one. If it is not yet, then its thread reads the list later, finds that it is not there,
//! and names it anew. So each spare one is named, by one list at least.

use pageset_core::{MigrateType, Order, ZoneId};

use super::{BlockAllocator, WholeUse};
use crate::access::Access;
use crate::atomic::{Relaxed, SeqCst};
use crate::cpu_lists::CpuLists;
use crate::index::BlockIndex;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Frees a block of a pageblock's size, and keeps it for this CPU. `false` if that has another one, or if it is no such block.
    pub(super) fn free_to_spare(&self, lists: &CpuLists, block: BlockIndex) -> bool {
        let named = lists.spare.load(Relaxed);
        if self.whole_use != WholeUse::AtHand || named != block as u32 + 1 && self.is_spare(named) {
            return false;
        }
        let to_spare = |state: State| {
            let is_block = state.is_block_of(Order::PAGEBLOCK) && !state.is_isolated();
            is_block.then(|| state.unused(Phase::Spare))
        };
        let is_spare = self.states[block].update::<A>(to_spare).is_ok();
        if is_spare && lists.spare.load(SeqCst) != block as u32 + 1 {
            self.name_spare(lists, block);
        }
        is_spare
    }

    #[cold]
    fn name_spare(&self, lists: &CpuLists, block: BlockIndex) {
        if let Some(before) = lists.spare.swap(block as u32 + 1, SeqCst).checked_sub(1) {
            // Of another thread that runs as the same CPU.
            self.give_spare(before as usize);
        }
    }

    /// Whether this is what a list names, and a CPU keeps it.
    pub(super) fn is_spare(&self, named: u32) -> bool {
        let block = (named as usize).wrapping_sub(1);
        self.states.get(block).is_some_and(|state| state.get().phase() == Phase::Spare)
    }

    /// The CPU's spare pageblock, if it has one, is a block in use from here on.
    #[inline]
    pub(super) fn take_spare(&self, lists: &CpuLists, migratetype: MigrateType) -> Option<BlockIndex> {
        let block = (lists.spare.load(Relaxed) as usize).wrapping_sub(1);
        let to_block = |state: State| {
            let is_there = state.phase() == Phase::Spare && !state.is_isolated();
            is_there.then(|| state.unused(Phase::Block).of_type(migratetype))
        };
        self.states.get(block)?.update::<A>(to_block).is_ok().then_some(block)
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
        if self.states.get(block).is_some_and(|state| state.change::<A>(Phase::Spare, Phase::Changing)) {
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
