//! CPUs whose numbers follow each other have their mixed pageblocks together: those of the first of them.
//!
//! If each CPU had one for each type, most would lie nearly empty. Where there is much memory for each CPU, that matters little, and
//! CPUs would only meet: there each has its own for movable memory, of which programs ask for most.

use pageset_core::{CpuId, MigrateType, ZoneId};

use super::BlockAllocator;
use super::refill::Needy;
use crate::cpu_lists::{AtHand, types};
use crate::stack::BlockIndex;

/// CPUs that share mixed pageblocks, a power of two. Decision 0029 in the sources compares numbers.
pub(super) const NEIGHBOURS: u32 = 8;

/// Pageblocks of a zone for each CPU from which on nobody shares movable memory: 512 MiB. Decision 0032 in the sources says what
/// that gains.
const AMPLE: usize = 256;

impl BlockAllocator<'_> {
    /// Whether there is much memory for each CPU. It follows from how large the zone can become, so it never changes.
    pub(super) fn is_ample(&self, zone: ZoneId) -> bool {
        self.zones[zone.index()].blocks.len() >= AMPLE.saturating_mul(self.cpus())
    }

    /// How many CPUs share mixed pageblocks of a type. It follows from how large the zone can become, so it never changes.
    pub(super) fn sharers(&self, zone: ZoneId, migratetype: MigrateType) -> u32 {
        if self.is_ample(zone) && migratetype == MigrateType::Movable { 1 } else { self.parts.sharers_max }
    }

    /// Whose the mixed pageblocks of this type are that a CPU takes from.
    fn first_neighbour(&self, zone: ZoneId, cpu: CpuId, migratetype: MigrateType) -> CpuId {
        CpuId(cpu.0 & !(self.sharers(zone, migratetype) - 1))
    }

    /// Which mixed pageblock the CPU and its neighbours take from.
    pub(super) fn mixed_at_hand(&self, needy: Needy<'_>) -> &AtHand {
        self.lists_at(needy.zone, needy.first_neighbour(self)).mixed(needy.wanted.migratetype)
    }

    /// The CPU and its neighbours take from this mixed pageblock from now on, and the one `before` is idle. If they have another one
    /// than that by now, it stays, and this one is idle.
    pub(super) fn share(&self, needy: Needy<'_>, before: Option<BlockIndex>, block: BlockIndex) {
        let at_hand = self.mixed_at_hand(needy);
        let left = if at_hand.replace_if(before, block) {
            // It may be the same one, which became whole and was claimed again.
            before.filter(|before| *before != block)
        } else {
            Some(block)
        };
        if let Some(left) = left {
            self.retire(left, needy.first_neighbour(self));
        }
    }

    /// Lets everybody have the mixed pageblocks of a CPU and its neighbours, if all who share one are idle.
    pub(super) fn give_up_mixed(&self, zone: ZoneId, cpu: CpuId) {
        for migratetype in types() {
            let first = self.first_neighbour(zone, cpu, migratetype);
            let last = first.0.saturating_add(self.sharers(zone, migratetype) - 1);
            let is_busy = |cpu| self.is_known(cpu) && self.lists_at(zone, cpu).activity.is_recent();
            if !(first.0..=last).map(CpuId).any(is_busy) {
                self.put_at_hand(self.lists_at(zone, first).mixed(migratetype), None, first);
            }
        }
    }
}

impl Needy<'_> {
    /// Whose the mixed pageblocks are that it takes from.
    pub(super) fn first_neighbour(&self, allocator: &BlockAllocator<'_>) -> CpuId {
        allocator.first_neighbour(self.zone, self.cpu, self.wanted.migratetype)
    }
}
