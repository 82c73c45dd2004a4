//! Watermark checks: whether a request leaves enough of a zone free.

use super::{Gauges, Watermark, ZoneBody, ZoneFlag};
use crate::policy::{BelowHigh, HighAtomicRule};
use crate::request::{AllocFlags, Request};
use crate::{MigrateType, Order, ZoneKind};

impl ZoneBody<'_> {
    /// Whether the zone walk may take a block from this zone (spec §1.13). Unless `below_high` is `Ignored`,
    /// this function also marks a zone that the request would leave below its high watermark (spec §2.9).
    #[inline]
    pub(crate) fn may_serve(
        &self,
        request: &Request,
        watermark: Watermark,
        flags: AllocFlags,
        below_high: BelowHigh,
    ) -> bool {
        let ok = |mark| self.is_watermark_ok_fast(request.order, mark, request.highest_zone, flags);
        let below = self.has(ZoneFlag::BelowHigh);
        let looks = match below_high {
            BelowHigh::Ignored => false,
            BelowHigh::CheckOnce => !below,
            BelowHigh::CheckAlways => true,
        };
        if looks {
            if ok(Watermark::High) {
                return true;
            }
            if !below {
                self.set(ZoneFlag::BelowHigh);
            }
        }
        ok(watermark) || flags.contains(AllocFlags::NO_WATERMARKS)
    }

    /// After a drain, clears the zone's below-high mark if the zone's free memory is above the high
    /// watermark.
    pub(crate) fn clear_below_high(&self) {
        if self.has(ZoneFlag::BelowHigh) {
            let high = self.marks.boosted(Watermark::High);
            if self.is_watermark_ok(Order::ZERO, high, ZoneKind::Movable, AllocFlags::empty()) {
                self.clear(ZoneFlag::BelowHigh);
            }
        }
    }

    /// Whether a request of `order` leaves more than `mark` frames free and finds a block (spec §1.11, the
    /// full check). Some flags lower `mark`. `highest` is the highest zone that the request may use.
    pub(crate) fn is_watermark_ok(
        &self,
        order: Order,
        mark: u64,
        highest: ZoneKind,
        flags: AllocFlags,
    ) -> bool {
        let frames = i64::from(order.frames());
        let free = self.gauges.free_pages() - (frames - 1) - self.unusable(flags);
        let mut min = i64::try_from(mark).unwrap_or(i64::MAX);
        if flags.contains(AllocFlags::MIN_RESERVE) {
            min -= min / 2;
            if flags.contains(AllocFlags::NON_BLOCK) {
                min -= min / 4;
            }
        }
        if flags.contains(AllocFlags::OOM) {
            min -= min / 2;
        }
        if free <= min.saturating_add(self.reserve_for(highest)) {
            return false;
        }
        order == Order::ZERO || self.has_block(order, flags)
    }

    /// The watermark check of the zone walk. For a request of order 0, one comparison is usually enough. An
    /// atomic request of order 0 may ignore the boost (spec §1.11, the fast variant).
    #[inline]
    pub(crate) fn is_watermark_ok_fast(
        &self,
        order: Order,
        watermark: Watermark,
        highest: ZoneKind,
        flags: AllocFlags,
    ) -> bool {
        let mark = self.marks.boosted(watermark);
        if order == Order::ZERO {
            let free = self.gauges.free_pages();
            let usable = free - free.min(self.unusable(flags));
            if usable > i64::try_from(mark).unwrap_or(i64::MAX).saturating_add(self.reserve_for(highest)) {
                return true;
            }
        }
        self.is_watermark_ok_slow(order, watermark, mark, highest, flags)
    }

    #[cold]
    fn is_watermark_ok_slow(
        &self,
        order: Order,
        watermark: Watermark,
        mark: u64,
        highest: ZoneKind,
        flags: AllocFlags,
    ) -> bool {
        if self.is_watermark_ok(order, mark, highest, flags) {
            return true;
        }
        let may_ignore_boost = order == Order::ZERO
            && self.marks.boost() != 0
            && watermark == Watermark::Min
            && flags.contains(AllocFlags::MIN_RESERVE);
        may_ignore_boost && self.is_watermark_ok(order, self.marks.unboosted(Watermark::Min), highest, flags)
    }

    /// Number of frames that the watermark check does not count as free, because a request with these flags
    /// may not use those frames.
    #[inline]
    fn unusable(&self, flags: AllocFlags) -> i64 {
        let mut frames = 0;
        if !flags.intersects(AllocFlags::RESERVES) {
            frames += match self.rules.highatomic {
                HighAtomicRule::WholeBlocks => {
                    i64::try_from(self.gauges.reserved_highatomic()).unwrap_or(i64::MAX)
                }
                HighAtomicRule::FreeFrames => self.gauges.free_highatomic(),
            };
        }
        if !flags.contains(AllocFlags::CMA) {
            frames += self.gauges.free_cma();
        }
        frames
    }

    #[inline]
    fn reserve_for(&self, highest: ZoneKind) -> i64 {
        i64::try_from(self.lowmem_reserve[highest.index()].get()).unwrap_or(i64::MAX)
    }

    fn has_block(&self, order: Order, flags: AllocFlags) -> bool {
        let has = |migratetype| Gauges::smallest(&self.gauges, order, migratetype).is_some();
        has(MigrateType::Unmovable)
            || has(MigrateType::Movable)
            || has(MigrateType::Reclaimable)
            || (flags.contains(AllocFlags::CMA) && has(MigrateType::Cma))
            || (flags.intersects(AllocFlags::HIGH_ATOMIC.union(AllocFlags::OOM))
                && has(MigrateType::HighAtomic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuId;
    use crate::buddy::tests::populated;
    use crate::policy::BuddyRules;
    use crate::zone::{LockedZone, Watermarks};

    fn free_left(frames: u64, free: u64) -> ZoneBody<'static> {
        let (body, _) = populated(frames, BuddyRules::LINUX_6_12);
        body.gauges.add_free(free as i64 - frames as i64);
        body
    }

    /// Tests worked example E17: how far below `min` a request with each reserve flag may go.
    #[test]
    fn example_e17_reserves() {
        let min = 10_980;
        for (flags, floor) in [
            (AllocFlags::empty(), 10_980),
            (AllocFlags::MIN_RESERVE, 5490),
            (AllocFlags::MIN_RESERVE | AllocFlags::NON_BLOCK, 4118),
            (AllocFlags::OOM, 5490),
        ] {
            let ok =
                |free| free_left(20_480, free).is_watermark_ok(Order::ZERO, min, ZoneKind::Normal, flags);
            assert!(ok(floor + 1), "{flags:?}");
            assert!(!ok(floor), "{flags:?}");
        }
    }

    /// Tests worked example E16. One free frame above the high watermark passes the fast check. With a
    /// `lowmem_reserve` of one frame, the check fails.
    #[test]
    fn example_e16_fast_check_at_high() {
        let zone = free_left(20_480, 16_471);
        zone.marks.set(Watermarks { min: 10_980, low: 13_725, high: 16_470 });
        let ok =
            || zone.is_watermark_ok_fast(Order::ZERO, Watermark::High, ZoneKind::Normal, AllocFlags::empty());
        assert!(ok());
        zone.lowmem_reserve[ZoneKind::Normal.index()].set(1);
        assert!(!ok());
    }

    #[test]
    fn an_atomic_request_ignores_the_boost_at_min_only() {
        let zone = free_left(20_480, 11_000);
        zone.marks.set(Watermarks { min: 10_980, low: 13_725, high: 16_470 });
        zone.marks.set_boost(40_000);
        let ok = |mark, flags| zone.is_watermark_ok_fast(Order::ZERO, mark, ZoneKind::Normal, flags);
        assert!(ok(Watermark::Min, AllocFlags::MIN_RESERVE));
        assert!(!ok(Watermark::Low, AllocFlags::MIN_RESERVE));
        assert!(!ok(Watermark::Min, AllocFlags::empty()));
    }

    #[test]
    fn a_high_order_needs_a_block_not_only_frames() {
        let (body, mut buddy) = populated(1024, BuddyRules::LINUX_6_12);
        assert!(LockedZone::new(&mut buddy, &body, &(), CpuId(0)).take_at(0, Order::ZERO));
        let ok = |order| {
            body.is_watermark_ok(Order::new(order).unwrap(), 0, ZoneKind::Normal, AllocFlags::empty())
        };
        assert!(ok(9));
        assert!(!ok(10));
    }
}
