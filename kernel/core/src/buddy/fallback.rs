//! Chooses one block for a request. If the wanted type has no block that is large enough, the request falls
//! back to a block of another type.

use crate::event::{Event, EventSink};
use crate::frame::FrameIndex;
use crate::policy::Fallback;
use crate::request::{AllocFlags, Wanted};
use crate::zone::{ListId, LockedZone};
use crate::{MigrateType, Order, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

/// Records where a refill found its previous block. The search for the refill's next block skips the lists
/// that come before the place of the previous block (spec §1.6.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FallbackMode {
    #[default]
    Normal,
    Cma,
    Steal,
}

/// A free list that a request of another type falls back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) migratetype: MigrateType,
    pub(super) reach: Reach,
}

/// The memory that a request may convert to its own type when the request takes a free block of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The request may convert only the free block.
    Block,
    /// The request may also convert the pageblock that holds the free block.
    Pageblock,
}

/// The types that `wanted` may fall back to, best first (spec §1.6).
fn fallbacks(wanted: MigrateType) -> &'static [MigrateType] {
    use MigrateType::{Movable, Reclaimable, Unmovable};
    match wanted {
        Unmovable => &[Reclaimable, Movable],
        Movable => &[Reclaimable, Unmovable],
        Reclaimable => &[Unmovable, Movable],
        _ => &[],
    }
}

impl<E: EventSink> LockedZone<'_, E> {
    /// Takes one block from the free lists. If the wanted type has no block, falls back to other types as the
    /// policy says (spec §1.6, §1.7). A refill passes one `mode` to the calls for all its blocks. An
    /// allocation of a single block passes a new `mode`.
    #[inline]
    pub(crate) fn take(
        &mut self,
        wanted: Wanted,
        flags: AllocFlags,
        mode: &mut FallbackMode,
    ) -> Option<FrameIndex> {
        if self.prefers_cma(flags)
            && let Some(frame) = self.take_smallest(wanted.order, MigrateType::Cma)
        {
            return Some(frame);
        }
        if *mode == FallbackMode::Normal
            && let Some(frame) = self.take_smallest(wanted.order, wanted.migratetype)
        {
            return Some(frame);
        }
        self.take_from_others(wanted, flags, mode)
    }

    #[cold]
    fn take_from_others(
        &mut self,
        wanted: Wanted,
        flags: AllocFlags,
        mode: &mut FallbackMode,
    ) -> Option<FrameIndex> {
        let cma = |zone: &mut Self| {
            flags
                .contains(AllocFlags::CMA)
                .then(|| zone.take_smallest(wanted.order, MigrateType::Cma))
                .flatten()
        };
        match self.body.rules.fallback {
            Fallback::StealAndRetry => loop {
                if let Some(frame) = cma(self) {
                    return Some(frame);
                }
                if !self.steal(wanted, flags) {
                    return None;
                }
                if let Some(frame) = self.take_smallest(wanted.order, wanted.migratetype) {
                    return Some(frame);
                }
            },
            Fallback::ClaimOrTakeOne => {
                if *mode != FallbackMode::Steal {
                    if let Some(frame) = cma(self) {
                        *mode = FallbackMode::Cma;
                        return Some(frame);
                    }
                    if let Some(frame) = self.claim(wanted, flags) {
                        *mode = FallbackMode::Normal;
                        return Some(frame);
                    }
                }
                if flags.contains(AllocFlags::NO_FRAGMENT) {
                    return None;
                }
                let frame = self.take_one(wanted)?;
                *mode = FallbackMode::Steal;
                Some(frame)
            }
        }
    }

    /// Whether a movable request should use the contiguous area (CMA) first, because the area has more than
    /// half of the zone's free memory.
    fn prefers_cma(&self, flags: AllocFlags) -> bool {
        flags.contains(AllocFlags::CMA) && {
            let free_cma = self.body.gauges.free_cma();
            free_cma > 0 && free_cma > self.free_pages() / 2
        }
    }

    /// The first fallback type with a block of exactly `order` (spec §1.6 *find*).
    pub(super) fn find_fallback(&self, order: Order, wanted: MigrateType) -> Option<Found> {
        if self.buddy.nr_free(order) == 0 {
            return None;
        }
        let migratetype =
            fallbacks(wanted).iter().copied().find(|other| !self.buddy.list(order, *other).is_empty())?;
        let can_steal = order.index() >= PAGEBLOCK_ORDER / 2
            || matches!(wanted, MigrateType::Unmovable | MigrateType::Reclaimable)
            || !self.is_grouped();
        let reach = if can_steal { Reach::Pageblock } else { Reach::Block };
        Some(Found { migratetype, reach })
    }

    /// The smallest order of a block that a fallback may take. With `NO_FRAGMENT` only whole pageblocks are
    /// allowed.
    pub(super) fn fallback_floor(order: Order, flags: AllocFlags) -> Order {
        if flags.contains(AllocFlags::NO_FRAGMENT) { order.max(Order::PAGEBLOCK) } else { order }
    }

    /// Whether a pageblock may be claimed if `frames` of its frames suit the new type. At least half of the
    /// frames must suit, unless the zone does not group pageblocks by mobility.
    pub(super) fn is_worth_claiming(&self, frames: u32) -> bool {
        frames >= PAGEBLOCK_FRAMES / 2 || !self.is_grouped()
    }

    pub(super) fn emit_extfrag(&self, frame: FrameIndex, wanted: Wanted, from: ListId) {
        self.emit(|| Event::MmPageAllocExtfrag {
            pfn: self.pfn(frame),
            alloc_order: wanted.order,
            fallback_order: from.order,
            alloc_migratetype: wanted.migratetype,
            fallback_migratetype: from.migratetype,
            change_ownership: self.body.frames.pageblock_type(frame) == wanted.migratetype,
        });
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::buddy::tests::Bench;
    use crate::policy::BuddyRules;

    /// Tests a race: grouping by mobility ends after a request has chosen its type and before the request has
    /// the zone's lock.
    #[test]
    fn types_agree_with_lists_if_grouping_ends_while_a_request_waits_for_the_lock() {
        for rules in [BuddyRules::LINUX_6_1, BuddyRules::LINUX_6_12] {
            let mut bench = Bench::new(2048, rules);
            bench.body.mobility_grouping.store(false, Relaxed);
            let migratetype = MigrateType::Reclaimable;
            let wanted = Wanted { order: Order::new(3).unwrap(), migratetype };
            let frame = bench.zone().take(wanted, AllocFlags::empty(), &mut FallbackMode::default());
            let got = frame.map(|frame| bench.body.frames.pageblock_type(frame));
            assert_eq!(got, Some(migratetype), "{rules:?}");
        }
    }
}
