//! Watermarks: how much of a zone must stay free, for whom.

use super::body::mul_frac;
use super::{Gauges, ZoneBody, ZoneFlag};
use crate::count::Count;
use crate::policy::{BelowHigh, HighAtomicRule};
use crate::request::{AllocFlags, Request};
use crate::{MigrateType, Order, ZoneKind};

/// A zone's watermarks in frames, without boost. Each is one step above the one before; absurd settings end at the largest
/// number, which no zone reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermarks {
    /// Only reserves below this.
    pub min: u64,
    /// The reclaimer is woken below this.
    pub low: u64,
    /// The reclaimer stops above this.
    pub high: u64,
}

/// Which watermark a request must stay above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watermark {
    /// The first attempt after the reclaimer was woken.
    Min,
    /// The ordinary first attempt.
    Low,
    /// Plenty.
    High,
}

/// What a zone's watermarks follow from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatermarkInputs {
    pub(crate) kind: ZoneKind,
    pub(crate) managed: u64,
}

/// What all zones' watermarks follow from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatermarkSettings {
    /// `min_free_kbytes` in frames.
    pub(crate) pages_min: u64,
    /// `watermark_scale_factor`, in 10 000ths of the zone.
    pub(crate) scale_factor: u32,
    /// Managed frames of all zones that count as low memory.
    pub(crate) lowmem: u64,
}

impl WatermarkSettings {
    /// The watermarks of one zone (spec §1.9, vectors `watermarks.csv`).
    pub(crate) fn watermarks(&self, zone: WatermarkInputs) -> Watermarks {
        let share = u128::from(self.pages_min) * u128::from(zone.managed) / u128::from(self.lowmem.max(1));
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        let min = match zone.kind {
            ZoneKind::HighMem | ZoneKind::Movable => (zone.managed / 1024).clamp(32, 128),
            _ => share,
        };
        let step = (share / 4).max(mul_frac(zone.managed, u64::from(self.scale_factor), 10_000));
        let above = |mark: u64| mark.saturating_add(step);
        let (low, high) = (above(min), above(above(min)));
        Watermarks { min, low, high }
    }
}

/// Linux's default `min_free_kbytes` for `free_kbytes` of memory: 4 · √(free), 128 to 262 144 (spec §1.9).
#[must_use]
pub fn default_min_free_kbytes(free_kbytes: u64) -> u64 {
    free_kbytes.saturating_mul(16).isqrt().clamp(128, 262_144)
}

/// A zone's watermarks and their boost, readable without the zone's lock.
#[derive(Debug)]
pub(crate) struct Marks {
    min: Count,
    low: Count,
    high: Count,
    boost: Count,
}

impl Marks {
    pub(super) const fn new() -> Self {
        Self { min: Count::new(), low: Count::new(), high: Count::new(), boost: Count::new() }
    }

    /// Sets all of them; the boost starts anew.
    pub(crate) fn set(&self, marks: Watermarks) {
        self.min.set(marks.min);
        self.low.set(marks.low);
        self.high.set(marks.high);
        self.boost.set(0);
    }

    pub(crate) fn all(&self) -> Watermarks {
        Watermarks { min: self.min.get(), low: self.low.get(), high: self.high.get() }
    }

    pub(crate) fn boost(&self) -> u64 {
        self.boost.get()
    }

    pub(crate) fn set_boost(&self, boost: u64) {
        self.boost.set(boost);
    }

    pub(crate) fn unboosted(&self, mark: Watermark) -> u64 {
        match mark {
            Watermark::Min => self.min.get(),
            Watermark::Low => self.low.get(),
            Watermark::High => self.high.get(),
        }
    }

    #[inline]
    pub(crate) fn boosted(&self, mark: Watermark) -> u64 {
        self.unboosted(mark).saturating_add(self.boost.get())
    }
}

impl ZoneBody<'_> {
    /// Whether the zone walk may take a block here (spec §1.13). Finds out on the way, as `below_high` says, that the zone
    /// is below its high watermark (spec §2.9).
    #[inline]
    pub(crate) fn may_serve(
        &self,
        request: &Request,
        watermark: Watermark,
        flags: AllocFlags,
        below_high: BelowHigh,
    ) -> bool {
        let ok = |mark| self.is_watermark_ok_fast(request.order, mark, request.highest_zone, flags);
        let below = self.gauges.has(ZoneFlag::BelowHigh);
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
                self.gauges.set(ZoneFlag::BelowHigh);
            }
        }
        ok(watermark) || flags.contains(AllocFlags::NO_WATERMARKS)
    }

    /// Ends the mark of a zone below its high watermark if it is above now: after a drain.
    pub(crate) fn clear_below_high(&self) {
        if self.gauges.has(ZoneFlag::BelowHigh) {
            let high = self.marks.boosted(Watermark::High);
            if self.is_watermark_ok(Order::ZERO, high, ZoneKind::Movable, AllocFlags::empty()) {
                self.gauges.clear(ZoneFlag::BelowHigh);
            }
        }
    }

    /// Whether a request of `order` leaves `mark` frames free, and finds a block (spec §1.11, the full check).
    /// `highest` is the highest zone the request may use.
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

    /// The check of the zone walk: order 0 mostly needs one comparison. An atomic request may ignore the boost
    /// (spec §1.11, the fast variant).
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

    /// Free frames that this request may not have.
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
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;
    use crate::CpuId;
    use crate::buddy::tests::populated;
    use crate::policy::BuddyRules;
    use crate::zone::LockedZone;

    #[test]
    fn watermarks_equal_the_vectors() {
        let table = include_str!("../../tests/vectors/watermarks.csv");
        let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
        assert!(rows.len() > 8);
        let number = |text: &str| text.parse::<u64>().unwrap();
        for row in &rows {
            let same_machine = rows.iter().filter(|other| other[0] == row[0]);
            let lowmem = same_machine.filter(|other| other[3] == "0").map(|other| number(other[2])).sum();
            let settings = WatermarkSettings {
                pages_min: number(row[4]) / 4,
                scale_factor: row[5].parse().unwrap(),
                lowmem,
            };
            let kind = if row[3] == "1" { ZoneKind::Movable } else { ZoneKind::Normal };
            let marks = settings.watermarks(WatermarkInputs { kind, managed: number(row[2]) });
            let ours = [marks.min, marks.low, marks.high].map(|mark| mark.to_string());
            assert_eq!(ours[..], row[6..9], "{row:?}");
        }
    }

    #[test]
    fn example_e18_default_min_free() {
        assert_eq!(default_min_free_kbytes(1024 * 1024), 4096);
        assert_eq!(default_min_free_kbytes(256 * 1024), 2048);
        assert_eq!(default_min_free_kbytes(16 * 1024 * 1024), 16_384);
        assert_eq!(default_min_free_kbytes(0), 128);
        assert_eq!(default_min_free_kbytes(u64::MAX), 262_144);
    }

    fn free_left(frames: u64, free: u64) -> ZoneBody<'static> {
        let (body, _) = populated(frames, BuddyRules::LINUX_6_12);
        body.gauges.add_free(free as i64 - frames as i64);
        body
    }

    /// Worked example E17: how far below `min` each reserve flag may go.
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

    /// Worked example E16: one comparison, with the reserve for requests that could use a higher zone.
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
