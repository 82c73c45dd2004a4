//! Steering: among several free blocks, chooses a block in a suitable unit of 1 GiB, so that few units hold
//! memory that cannot be moved ([`UnitSteering`]).

use crate::event::EventSink;
use crate::frame::{FrameIndex, State};
use crate::policy::UnitSteering;
use crate::request::{AllocFlags, Wanted};
use crate::zone::{ListId, LockedZone};
use crate::{MigrateType, Order, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

/// Number of frames of 4 KiB in a unit of 1 GiB.
const UNIT: FrameIndex = 1 << 18;

/// Whether a unit is tainted (has memory that cannot be moved) or clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Clean,
    Tainted,
}

impl Kind {
    fn for_type(migratetype: MigrateType) -> Self {
        if migratetype == MigrateType::Movable { Self::Clean } else { Self::Tainted }
    }
}

impl<E: EventSink> LockedZone<'_, E> {
    /// Looks at the first blocks of a list of whole pageblocks. A movable request prefers clean units, and
    /// any other request prefers tainted units. Returns the block in the fullest unit of the preferred kind,
    /// or `None` if no block lies in a unit of the preferred kind.
    #[cold]
    pub(super) fn steered_whole(
        &self,
        rule: UnitSteering,
        list: ListId,
        wanted: MigrateType,
    ) -> Option<FrameIndex> {
        let kind = Kind::for_type(wanted);
        let of_kind = self.first_of(rule, list).filter(|frame| self.kind_of(*frame) == kind);
        of_kind.min_by_key(|frame| self.free_pageblocks_around(*frame))
    }

    /// Claims memory of another type in a tainted unit, for a request that is not movable. Tries whole
    /// pageblocks first, and then smaller blocks if the zone has many units.
    #[cold]
    pub(super) fn claim_in_tainted(
        &mut self,
        rule: UnitSteering,
        wanted: Wanted,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        if wanted.migratetype == MigrateType::Movable {
            return None;
        }
        let units = self.body.frames.len().div_ceil(UNIT);
        for order in Self::fallback_floor(wanted.order, flags).and_above().rev() {
            if order < Order::PAGEBLOCK && units <= rule.fragments_above_units {
                return None;
            }
            let Some(found) = self.find_fallback(order, wanted.migratetype) else { continue };
            let list = ListId { order, migratetype: found.migratetype };
            let chosen = match order >= Order::PAGEBLOCK {
                true => self.steered_whole(rule, list, wanted.migratetype),
                false => self.first_in_tainted(rule, list),
            };
            let Some(frame) = chosen else { continue };
            if let Some(claimed) = self.claim_block(frame, list, wanted, flags) {
                self.emit_extfrag(claimed, wanted, list);
                return Some(claimed);
            }
            if order < Order::PAGEBLOCK && !flags.contains(AllocFlags::NO_FRAGMENT) {
                return Some(self.take_this(frame, list, wanted));
            }
        }
        None
    }

    /// Searches the first `looks_max` blocks of a list. Returns the first block that lies in a tainted unit.
    pub(super) fn first_in_tainted(&self, rule: UnitSteering, list: ListId) -> Option<FrameIndex> {
        self.first_of(rule, list).find(|frame| self.kind_of(*frame) == Kind::Tainted)
    }

    fn first_of(&self, rule: UnitSteering, list: ListId) -> impl Iterator<Item = FrameIndex> {
        let list = self.buddy.list(list.order, list.migratetype);
        list.iter(&self.body.frames).take(rule.looks_max as usize)
    }

    fn pageblocks_around(&self, frame: FrameIndex) -> impl Iterator<Item = FrameIndex> {
        let first = frame & !(UNIT - 1);
        let end = first.saturating_add(UNIT).min(self.body.frames.len());
        (first..end).step_by(PAGEBLOCK_FRAMES as usize)
    }

    fn kind_of(&self, frame: FrameIndex) -> Kind {
        let taints = |start: FrameIndex| {
            use MigrateType::{HighAtomic, Reclaimable, Unmovable};
            let migratetype = self.body.frames.pageblock_type(start);
            matches!(migratetype, Unmovable | Reclaimable | HighAtomic) && self.free_order(start).is_none()
        };
        if self.pageblocks_around(frame).any(taints) { Kind::Tainted } else { Kind::Clean }
    }

    /// Number of completely free pageblocks in the frame's unit.
    fn free_pageblocks_around(&self, frame: FrameIndex) -> u32 {
        let begins_here = |start: FrameIndex| match self.body.frames.state(start) {
            State::Free { order, .. } if order >= Order::PAGEBLOCK => 1 << (order.index() - PAGEBLOCK_ORDER),
            _ => 0,
        };
        self.pageblocks_around(frame).map(begins_here).sum()
    }

    /// The order of the free block that contains the whole pageblock at `start`, if there is one.
    fn free_order(&self, start: FrameIndex) -> Option<Order> {
        match self.body.frames.covering_block(start)? {
            (_, State::Free { order, .. }) if order >= Order::PAGEBLOCK => Some(order),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::buddy::tests::Bench;
    use crate::policy::{BuddyRules, SUPERPAGEBLOCK_RFC};

    const UNITS: u64 = 12;

    fn bench(rules: BuddyRules) -> Bench {
        Bench::new(UNITS * u64::from(UNIT), rules)
    }

    fn take(bench: &mut Bench, migratetype: MigrateType) -> FrameIndex {
        let wanted = Wanted { order: Order::PAGEBLOCK, migratetype };
        let frame = bench.zone().take(wanted, AllocFlags::empty(), &mut Default::default()).unwrap();
        let is_movable = migratetype == MigrateType::Movable;
        let state = State::Allocated { order: Order::PAGEBLOCK, movable: is_movable };
        bench.body.frames.set_state(frame, state);
        frame
    }

    #[test]
    fn a_fragment_in_a_tainted_unit_is_used_before_a_clean_unit_is_tainted() {
        for (rules, stays) in [(SUPERPAGEBLOCK_RFC.buddy, true), (BuddyRules::LINUX_6_12, false)] {
            let mut bench = bench(rules);
            // All pageblocks of the first unit are in use. The last two pageblocks of the first unit hold
            // memory that cannot be moved.
            let free: Vec<_> = (0..510).map(|_| take(&mut bench, MigrateType::Movable)).collect();
            let pinned = [0; 2].map(|_| take(&mut bench, MigrateType::Unmovable));
            assert!(free.iter().chain(&pinned).all(|frame| *frame < UNIT));
            // In each of the first 510 pageblocks of the unit, leave one free page.
            for start in free {
                bench.free(start, Order::PAGEBLOCK);
                for frame in (start..start + PAGEBLOCK_FRAMES).filter(|frame| *frame != start + 7) {
                    assert!(bench.zone().take_at(frame, Order::ZERO));
                    let state = State::Allocated { order: Order::ZERO, movable: true };
                    bench.body.frames.set_state(frame, state);
                }
            }
            let wanted = Wanted { order: Order::ZERO, migratetype: MigrateType::Unmovable };
            for _ in 0..100 {
                let frame = bench.zone().take(wanted, AllocFlags::empty(), &mut Default::default()).unwrap();
                let state = State::Allocated { order: Order::ZERO, movable: false };
                bench.body.frames.set_state(frame, state);
                assert_eq!(frame < UNIT, stays);
            }
        }
    }
}
