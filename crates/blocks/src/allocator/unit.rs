//! Units of 1 GiB: which whole pageblock a CPU claims, so that what cannot be moved lies in few of them.
//!
//! A unit is *tainted* from the first time that a pageblock of it is claimed for a type that cannot be moved. It stays so: where such memory
//! was once, it comes again. Movable requests use clean units while these have room, the others tainted ones: whole pageblocks, then what
//! is left of movable ones. When there is nothing, they taint one more unit: of the clean ones, that with the most whole pageblocks.
//!
//! What is read here may be late by a moment: then a pageblock comes from a unit of the other kind, and nothing else happens. So nobody
//! has to win.

use core::ops::Range;

use pageset_core::{MigrateType, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

use super::refill::Needy;
use super::whole::{TAINTED, WHOLE};
use super::{BlockAllocator, WholeUse};
use crate::access::Access;
use crate::atomic::Relaxed;
use crate::cpu_lists::count;
use crate::index::{BlockIndex, Set};
use crate::zone::Zone;

/// Pageblocks of a unit.
const UNIT: usize = (1 << 30) / (PAGEBLOCK_FRAMES as usize * 4096);
/// Units that a search looks at, at most. A machine with more has them in the tables' order.
const LOOKS: usize = 512;

/// Where a request looks for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// In units of the kind that suits its type.
    Suiting,
    /// In all of them, in those first.
    All,
}

fn is_movable(needy: Needy<'_>) -> bool {
    needy.wanted.migratetype == MigrateType::Movable
}

impl<A: Access> BlockAllocator<'_, A> {
    /// A block of another pageblock than the one at hand: in units that suit, and then anywhere.
    pub(super) fn take_from_another(&self, needy: Needy<'_>) -> Option<usize> {
        if !self.steers() || !self.has_tainted(needy) {
            return self.take_from(needy);
        }
        let suiting = Needy { places: Places::Suiting, ..needy };
        self.take_from(suiting)
            .or_else(|| self.take_movable_in_tainted(needy))
            .or_else(|| self.take_from(needy))
    }

    /// A host that gives memory back from the end decides by place alone.
    fn steers(&self) -> bool {
        self.whole_use == WholeUse::AtHand
    }

    fn has_tainted(&self, needy: Needy<'_>) -> bool {
        let blocks = &self.zones[needy.zone.index()].blocks;
        self.index.set::<A>(TAINTED).find_from(blocks, blocks.start).is_some()
    }

    /// The whole pageblock to claim next.
    pub(super) fn find_whole(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let zone = &self.zones[needy.zone.index()];
        let whole = self.index.set::<A>(WHOLE);
        if !self.steers() {
            return whole.find(&zone.blocks, zone.blocks.start);
        }
        let nearest = whole.find(&zone.blocks, needy.lists.near.load(Relaxed) as usize)?;
        if self.is_tainted(zone, nearest) != is_movable(needy) {
            return Some(nearest);
        }
        let suiting = if is_movable(needy) {
            self.find_clean(zone, &whole, self.own_part(needy, &zone.blocks))
        } else {
            self.find_in_tainted(needy, &whole)
        };
        match (suiting, needy.places) {
            (None, Places::All) if is_movable(needy) => Some(nearest),
            (None, Places::All) => self.to_taint(zone),
            _ => suiting,
        }
    }

    /// A member of a set that a request of this type looks for: of movable ones, in a clean unit if it has to be one that suits.
    pub(super) fn find_open(
        &self,
        zone: &Zone,
        set: &Set<'_, A>,
        needy: Needy<'_>,
        near: BlockIndex,
    ) -> Option<BlockIndex> {
        if needy.places == Places::Suiting && is_movable(needy) {
            return self.find_clean(zone, set, near);
        }
        set.find(&zone.blocks, near)
    }

    /// A pageblock was claimed whole for a request.
    #[inline]
    pub(super) fn note_use(&self, needy: Needy<'_>, block: BlockIndex) {
        if !is_movable(needy) && self.steers() {
            let zone = &self.zones[needy.zone.index()];
            self.index.set::<A>(TAINTED).add(zone.unit_of(block).start);
        }
    }

    fn is_tainted(&self, zone: &Zone, block: BlockIndex) -> bool {
        self.index.set::<A>(TAINTED).has(zone.unit_of(block).start)
    }

    /// Where a CPU begins to look, so that CPUs stay apart.
    fn own_part(&self, needy: Needy<'_>, blocks: &Range<BlockIndex>) -> BlockIndex {
        blocks.start + blocks.len() * needy.cpu.index() / self.cpus().max(1)
    }

    /// The first member of a set, from `near` on, that lies in a clean unit.
    fn find_clean(&self, zone: &Zone, set: &Set<'_, A>, near: BlockIndex) -> Option<BlockIndex> {
        let blocks = &zone.blocks;
        let near = near.clamp(blocks.start, blocks.end);
        let mut looks = 0;
        for range in [near..blocks.end, blocks.start..near] {
            let mut from = range.start;
            while looks < LOOKS
                && let Some(block) = set.find_from(&range, from)
            {
                if !self.is_tainted(zone, block) {
                    return Some(block);
                }
                (from, looks) = (zone.unit_of(block).end, looks + 1);
            }
        }
        None
    }

    /// A member of a set in a tainted unit.
    fn find_in_tainted(&self, needy: Needy<'_>, set: &Set<'_, A>) -> Option<BlockIndex> {
        let zone = &self.zones[needy.zone.index()];
        let tainted = self.index.set::<A>(TAINTED);
        let mut from = zone.blocks.start;
        for _ in 0..LOOKS {
            let unit = zone.unit_of(tainted.find_from(&zone.blocks, from)?);
            let found = set.find(&unit, self.own_part(needy, &unit));
            if found.is_some() {
                return found;
            }
            from = unit.end;
        }
        None
    }

    /// Reserves what is left of a movable pageblock in a tainted unit, the one with the largest free block first.
    #[cold]
    fn take_movable_in_tainted(&self, needy: Needy<'_>) -> Option<usize> {
        if is_movable(needy) {
            return None;
        }
        let movable = MigrateType::Movable;
        for order in (needy.wanted.order.index()..PAGEBLOCK_ORDER).rev() {
            let set = self.set_of(movable.index(), order);
            while let Some(block) = self.find_in_tainted(needy, &set) {
                if !self.reserve_indexed(needy, block, movable, order) {
                    // It is not what its set says, or somebody was faster.
                    self.leave_set(block, movable.index(), order);
                    continue;
                }
                count::<A>(&needy.lists.counters.retyped);
                count::<A>(&needy.lists.counters.foreign);
                self.put_at_hand(needy.lists.at_hand(needy.wanted), Some(block), needy.cpu);
                if let Some(index) = self.take_rest(needy) {
                    return Some(index);
                }
            }
        }
        None
    }

    /// A whole pageblock of the clean unit that has most of them.
    #[cold]
    fn to_taint(&self, zone: &Zone) -> Option<BlockIndex> {
        let whole = self.index.set::<A>(WHOLE);
        let (mut most, mut found, mut from) = (0, None, zone.blocks.start);
        for _ in 0..LOOKS {
            let Some(block) = whole.find_from(&zone.blocks, from) else { break };
            let unit = zone.unit_of(block);
            let there = whole.count(&unit);
            if there > most {
                (most, found) = (there, Some(block));
            }
            if most == UNIT {
                break;
            }
            from = unit.end;
        }
        found
    }
}

impl Zone {
    /// The pageblocks of the zone that lie in the same GiB as this one.
    fn unit_of(&self, block: BlockIndex) -> Range<BlockIndex> {
        let first_pfn = self.pfn(block * PAGEBLOCK_FRAMES as usize).0;
        let within = (first_pfn / u64::from(PAGEBLOCK_FRAMES)) as usize % UNIT;
        let start = block.saturating_sub(within).max(self.blocks.start);
        start..(block - within.min(block) + UNIT).min(self.blocks.end)
    }
}

#[cfg(all(test, feature = "alloc", not(any(loom, shuttle))))]
mod tests {
    use pageset_core::{Config, CpuId, NodeId, Order, Request, ZoneConfig, ZoneKind};

    use super::*;
    use crate::{EveryCpu, Tables};

    /// 8 GiB, two CPUs.
    const GIB: u64 = 1 << 18;

    #[test]
    fn what_cannot_be_moved_lies_in_few_units_and_what_can_be_moved_elsewhere() {
        let regions = [0..8 * GIB];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..8 * GIB, regions: &regions }];
        let config = Config::new(&zones, &[NodeId(0); 2]);
        let allocator = BlockAllocator::new(&config, Tables::on_heap(&config).unwrap()).unwrap();
        let cpus = EveryCpu::new(&allocator).unwrap();
        let mut units = [[0_u32; 8]; 2];
        for round in 0..GIB as u32 {
            for (index, request) in
                [Request::new(Order::ZERO).movable(), Request::new(Order::ZERO)].iter().enumerate()
            {
                let cpu = CpuId(round % 2);
                let pfn = pageset_core::FrameAllocator::alloc(&cpus, cpu, request).unwrap();
                units[index][(pfn.0 / GIB) as usize] += 1;
            }
        }
        let both = (0..8).filter(|unit| units[0][*unit] > 0 && units[1][*unit] > 0).count();
        let unmovable = units[1].iter().filter(|pages| **pages > 0).count();
        assert!(both <= 1 && unmovable <= 2, "{units:?}");
    }
}
