//! The spare pageblock: a whole pageblock that a CPU freed, kept for its next request of this order.
//!
//! The pageblock's state says that it is a spare. A CPU takes it by an exchange of the state, so only one
//! CPU gets it. Each CPU's share has the number of its spare, and keeps the number while the pageblock is in
//! use. So a CPU that frees and takes the same pageblock again and again changes only the state.
//!
//! # Which operations may race, who loses, and why that is safe
//!
//! Race: two threads that run as the same CPU make two different pageblocks the spare. Each thread first
//! changes its pageblock's state. Then it reads the share, and writes its pageblock there unless the share
//! names it already. The thread that writes second finds the other pageblock in the share, and returns it to
//! the zone if its state says spare. If the state does not say so yet, the first thread has not read the
//! list yet. It will find another pageblock there, and write its own again. So a share names each spare
//! pageblock, and none is lost.

use pageset_core::{CpuId, MigrateType, Order, ZoneId};

use super::{BlockAllocator, WholeUse};
use crate::access::Access;
use crate::atomic::{Relaxed, SeqCst};
use crate::cpu_share::CpuShare;
use crate::index::BlockIndex;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Frees a block of pageblock size and keeps it for this CPU. `false` if the CPU has another spare, or if
    /// there is no such block in use.
    pub(super) fn free_to_spare(&self, cpu: CpuId, zone: ZoneId, block: BlockIndex) -> bool {
        let share = self.share_at(zone, cpu);
        let named = share.spare.load(Relaxed);
        if self.whole_use != WholeUse::Nearest || named != block as u32 + 1 && self.is_spare(named) {
            return false;
        }
        let to_spare = |state: State| {
            let is_block = state.is_block_of(Order::PAGEBLOCK) && !state.is_isolated();
            is_block.then(|| state.spare_of(cpu))
        };
        let is_spare = self.states[block].update::<A>(to_spare).is_ok();
        if is_spare && share.spare.load(SeqCst) != block as u32 + 1 {
            self.name_spare(share, block);
        }
        is_spare
    }

    #[cold]
    fn name_spare(&self, share: &CpuShare, block: BlockIndex) {
        if let Some(before) = share.spare.swap(block as u32 + 1, SeqCst).checked_sub(1) {
            // Usually the share names a pageblock that is no spare any more. Race: or another thread that runs
            // as the same CPU has just made that pageblock the spare.
            self.give_spare(before as usize);
        }
    }

    /// Whether the pageblock with this number in a list is a spare.
    pub(super) fn is_spare(&self, named: u32) -> bool {
        let block = (named as usize).wrapping_sub(1);
        self.states.get(block).is_some_and(|state| state.get().phase() == Phase::Spare)
    }

    /// Turns the CPU's spare pageblock, if it has one, into a block in use.
    #[inline]
    pub(super) fn take_spare(&self, share: &CpuShare, migratetype: MigrateType) -> Option<BlockIndex> {
        let block = (share.spare.load(Relaxed) as usize).wrapping_sub(1);
        let to_block = |state: State| {
            let is_there = state.phase() == Phase::Spare && !state.is_isolated();
            is_there.then(|| state.closed_as(Phase::Block).of_type(migratetype))
        };
        self.states.get(block)?.update::<A>(to_block).ok()?;
        self.note_use(migratetype, block);
        Some(block)
    }

    fn remove_spare(&self, share: &CpuShare) -> Option<BlockIndex> {
        if share.spare.load(Relaxed) == 0 {
            return None;
        }
        let block = share.spare.swap(0, SeqCst).checked_sub(1)? as usize;
        (block < self.states.len()).then_some(block)
    }

    /// Returns a pageblock to the zone if it is a spare.
    pub(super) fn give_spare(&self, block: BlockIndex) {
        if self.states.get(block).is_some_and(|state| state.change::<A>(Phase::Spare, Phase::Changing)) {
            self.give_whole(block);
        }
    }

    /// Returns a CPU's spare pageblock to the zone.
    pub(super) fn give_spare_of(&self, share: &CpuShare) {
        self.remove_spare(share).into_iter().for_each(|block| self.give_spare(block));
    }

    /// Returns all spare pageblocks of a zone. O(CPUs).
    pub(super) fn give_spares(&self, zone: &Zone) {
        self.shares_in(zone.id).for_each(|share| self.give_spare_of(share));
    }

    /// Whether a CPU's share names this pageblock as its spare.
    pub(super) fn is_spare_of_any(&self, zone: ZoneId, block: BlockIndex) -> bool {
        self.shares_in(zone).any(|share| share.spare.load(Relaxed) == block as u32 + 1)
    }
}
