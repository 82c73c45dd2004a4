//! CPUs whose numbers follow each other have their mixed pageblocks together: those of the first of them.
//!
//! If each CPU had one for each type, most would lie nearly empty.

use pageset_core::{CpuId, MigrateType, ZoneId};

use super::BlockAllocator;
use super::refill::Needy;
use crate::cpu_lists::AtHand;
use crate::stack::BlockIndex;

/// CPUs that share mixed pageblocks. Decision 0029 in the sources compares numbers.
const NEIGHBOURS: u32 = 8;

impl BlockAllocator<'_> {
    /// Whose the mixed pageblocks of a CPU and its neighbours are.
    pub(super) const fn first_neighbour(cpu: CpuId) -> CpuId {
        CpuId(cpu.0 - cpu.0 % NEIGHBOURS)
    }

    /// Which mixed pageblock of this type a CPU and its neighbours take from.
    pub(super) fn mixed_at_hand(&self, zone: ZoneId, cpu: CpuId, migratetype: MigrateType) -> &AtHand {
        self.lists_at(zone, Self::first_neighbour(cpu)).mixed(migratetype)
    }

    /// The CPU and its neighbours take from this mixed pageblock from now on, and the one `before` is idle. If they have another one
    /// than that by now, it stays, and this one is idle.
    pub(super) fn share(&self, needy: Needy<'_>, before: Option<BlockIndex>, block: BlockIndex) {
        let at_hand = self.mixed_at_hand(needy.zone, needy.cpu, needy.wanted.migratetype);
        let left = if at_hand.replace_if(before, block) {
            // It may be the same one, which became whole and was claimed again.
            before.filter(|before| *before != block)
        } else {
            Some(block)
        };
        if let Some(left) = left {
            self.retire(left, Self::first_neighbour(needy.cpu));
        }
    }

    /// Lets everybody have the mixed pageblocks of a CPU and its neighbours, if all of them are idle.
    pub(super) fn give_up_mixed(&self, zone: ZoneId, cpu: CpuId) {
        let first = Self::first_neighbour(cpu);
        let mut neighbours = (first.0..first.0.saturating_add(NEIGHBOURS)).map(CpuId);
        if !neighbours.any(|cpu| self.is_known(cpu) && self.lists_at(zone, cpu).activity.is_recent()) {
            let mixed = self.lists_at(zone, first).mixed_at_hand();
            mixed.for_each(|at_hand| self.put_at_hand(at_hand, None, first));
        }
    }
}
