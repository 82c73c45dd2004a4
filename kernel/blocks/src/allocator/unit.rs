//! Chooses whole pageblocks so that memory that cannot be moved is in few units of 1 GiB. Other units can
//! then become completely free.
//!
//! A unit becomes *tainted* when one of its pageblocks is first used for a type that cannot be moved. The
//! unit stays tainted, because such memory tends to return to the same places. Movable requests use *clean*
//! units while these have room. Requests for memory that cannot be moved prefer tainted units. In tainted
//! units, such a request first uses pageblocks of its own type and whole pageblocks. Then the request changes
//! the type of movable pageblocks in part use. Last, it changes the type of pageblocks of the other type that
//! cannot be moved. If no tainted unit has room, a request taints the clean unit with the most whole
//! pageblocks.
//!
//! Race: other CPUs change units while this CPU chooses one. No CPU loses: a request may get a pageblock of
//! an unsuitable unit, which does no harm.

use core::ops::Range;

use pageset_core::MigrateType;

use super::needy::{Needy, Places};
use super::sets::Members;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::ids::{BlockId, FrameId, each};
use crate::index::Set;
use crate::zone::Zone;

/// The number of pageblocks of a unit.
pub(super) const UNIT: usize = (1 << 30) / (FRAMES * 4096);
/// The most units that a search looks at. Chosen: enough for 512 GiB. In a larger zone, a search may miss a
/// suitable unit.
const UNITS_SEARCHED: usize = 512;

/// Which whole pageblock a CPU uses next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WholeUse {
    /// A pageblock near the pageblock that the CPU used or freed last, if its unit suits. So different CPUs
    /// use different parts of memory. `Nearest` exists only with the feature `units`, and is then the
    /// default.
    #[cfg(feature = "units")]
    #[default]
    Nearest,
    /// The lowest whole pageblock, so that memory at the end stays free. Use this rule if your program
    /// returns memory from the end. CPUs keep no stocks of whole pageblocks.
    #[cfg_attr(not(feature = "units"), default)]
    LowestFirst,
}

impl<A: Access> BlockAllocator<'_, A> {
    /// Sets the rule for choosing whole pageblocks.
    #[must_use]
    pub fn with_whole_use(mut self, rule: WholeUse) -> Self {
        self.whole_use = rule;
        self
    }

    /// Whether units matter and CPUs keep stocks. A program that returns memory from the end needs the lowest
    /// pageblocks to be used first. For such a program, units do not matter, and CPUs keep no stocks.
    pub(super) fn steers(&self) -> bool {
        self.whole_use != WholeUse::LowestFirst
    }

    /// The whole pageblock to claim next.
    pub(super) fn find_whole(&self, needy: Needy<'_>) -> Option<BlockId> {
        let zone = &self.zones[needy.zone.index()];
        let whole = self.set(Members::Whole);
        if !self.steers() {
            return whole.find(&zone.blocks, zone.blocks.start);
        }
        let nearest = whole.find(&zone.blocks, needy.share.near())?;
        if self.is_tainted(zone, nearest) != needy.is_movable() {
            return Some(nearest);
        }
        let suiting = if needy.is_movable() {
            self.find_clean(zone, &whole, self.own_part(needy, &zone.blocks))
        } else {
            self.find_in_tainted(needy, &whole)
        };
        match (suiting, needy.places) {
            (None, Places::All) if needy.is_movable() => Some(nearest),
            (None, Places::All) => self.to_taint(zone, needy),
            _ => suiting,
        }
    }

    /// Finds a member of `set` that this request may use. With `Places::Suiting`, a movable request gets only
    /// pageblocks in clean units.
    pub(super) fn find_open(
        &self,
        zone: &Zone,
        set: &Set<'_, A>,
        needy: Needy<'_>,
        near: BlockId,
    ) -> Option<BlockId> {
        if self.steers() && needy.places == Places::Suiting && needy.is_movable() {
            return self.find_clean(zone, set, near);
        }
        set.find(&zone.blocks, near)
    }

    /// Whether a request may use the unit of this pageblock. A movable request with `Places::Suiting` uses
    /// only clean units.
    pub(super) fn suits(&self, zone: &Zone, needy: Needy<'_>, block: BlockId) -> bool {
        needy.places == Places::All || !needy.is_movable() || !self.is_tainted(zone, block)
    }

    /// Taints the unit of a pageblock that begins to serve a type that cannot be moved.
    #[inline]
    pub(super) fn note_use(&self, migratetype: MigrateType, block: BlockId) {
        if migratetype != MigrateType::Movable && self.steers() {
            self.set(Members::Tainted).add(self.zone_at(block).unit_of(block).start);
        }
    }

    /// Whether a request should take whole pageblocks from the unit of this pageblock.
    pub(super) fn is_suitable(&self, zone: &Zone, needy: Needy<'_>, block: BlockId) -> bool {
        zone.blocks.contains(&block) && self.is_tainted(zone, block) != needy.is_movable()
    }

    fn is_tainted(&self, zone: &Zone, block: BlockId) -> bool {
        self.set(Members::Tainted).has(zone.unit_of(block).start)
    }

    /// The pageblock where a CPU begins its search. CPUs begin far from each other if the range has more
    /// pageblocks than there are CPUs.
    fn own_part(&self, needy: Needy<'_>, blocks: &Range<BlockId>) -> BlockId {
        blocks.start.after(each(blocks).len() * needy.cpu.index() / self.cpus().max(1))
    }

    /// The first member of a set in a clean unit, from `near` on.
    fn find_clean(&self, zone: &Zone, set: &Set<'_, A>, near: BlockId) -> Option<BlockId> {
        let blocks = &zone.blocks;
        let near = near.clamp(blocks.start, blocks.end);
        let mut looks = 0;
        for range in [near..blocks.end, blocks.start..near] {
            let mut from = range.start;
            while looks < UNITS_SEARCHED
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

    /// A pageblock that is a member of `set` and lies in a tainted unit.
    pub(super) fn find_in_tainted(&self, needy: Needy<'_>, set: &Set<'_, A>) -> Option<BlockId> {
        let zone = &self.zones[needy.zone.index()];
        // Most sets have no members in the zone. So one search of the whole zone saves a search of each
        // tainted unit.
        set.find_from(&zone.blocks, zone.blocks.start)?;
        let tainted = self.set(Members::Tainted);
        let mut from = zone.blocks.start;
        for _ in 0..UNITS_SEARCHED {
            let unit = zone.unit_of(tainted.find_from(&zone.blocks, from)?);
            let found = set.find(&unit, self.own_part(needy, &unit));
            if found.is_some() {
                return found;
            }
            from = unit.end;
        }
        None
    }

    /// Adds the unit of a pageblock that became whole to the set of whole units, if all of it is whole now.
    pub(super) fn note_unit(&self, zone: &Zone, block: BlockId) {
        let unit = zone.unit_of(block);
        let units = self.set(Members::WholeUnits);
        if each(&unit).len() == UNIT && !units.has(unit.start) && self.is_whole_unit(&unit) {
            units.add(unit.start);
        }
    }

    /// Adds all whole units of a zone to their set.
    pub(super) fn note_units(&self, zone: &Zone) {
        let mut block = zone.blocks.start;
        while block < zone.blocks.end {
            self.note_unit(zone, block);
            block = zone.unit_of(block).end;
        }
    }

    /// The first whole unit of a zone from `from` on. A unit stays in the set when one of its pageblocks is
    /// claimed, so that a claim costs nothing more. The first search that finds a unit with a claimed
    /// pageblock removes the unit from the set of whole units.
    pub(super) fn find_whole_unit(&self, zone: &Zone, from: BlockId) -> Option<Range<BlockId>> {
        let units = self.set(Members::WholeUnits);
        let mut at = from;
        loop {
            let unit = zone.unit_of(units.find_from(&zone.blocks, at)?);
            if self.is_whole_unit(&unit) {
                return Some(unit);
            }
            units.remove(unit.start);
            // Race: before this removal, another CPU made the unit whole, and did not add it, because it was
            // still in the set. So this CPU adds the unit to the set again if the unit is whole.
            self.note_unit(zone, unit.start);
            at = unit.end;
        }
    }

    fn is_whole_unit(&self, unit: &Range<BlockId>) -> bool {
        self.set(Members::Whole).first_missing(unit).is_none()
    }

    /// A whole pageblock of the clean unit that has the most whole pageblocks, in the CPU's own part of it.
    #[cold]
    fn to_taint(&self, zone: &Zone, needy: Needy<'_>) -> Option<BlockId> {
        let whole = self.set(Members::Whole);
        let (mut most, mut found, mut from) = (0, zone.blocks.start..zone.blocks.start, zone.blocks.start);
        for _ in 0..UNITS_SEARCHED {
            let Some(block) = whole.find_from(&zone.blocks, from) else { break };
            let unit = zone.unit_of(block);
            let there = whole.count(&unit);
            from = unit.end;
            if there > most {
                (most, found) = (there, unit);
            }
            if most == UNIT {
                break;
            }
        }
        whole.find(&found, self.own_part(needy, &found))
    }
}

impl Zone {
    /// The pageblocks of the zone in the same GiB as this one.
    fn unit_of(&self, block: BlockId) -> Range<BlockId> {
        let first_pfn = self.pfn(FrameId::of(block, 0)).0;
        let within = (first_pfn / FRAMES as u64) as usize % UNIT;
        let start = BlockId(block.0.saturating_sub(within)).max(self.blocks.start);
        start..block.after(UNIT - within).min(self.blocks.end)
    }
}
