//! Two flags of a zone at each moment: whether the zone is below its high watermark, and whether it is being
//! reclaimed. No event reports the flags, but other events show when the flags change.

use pageset_core::pcp::Pressure;
use pageset_trace::ZoneDescription;

use crate::gfp;

/// The free pages of a zone, as far as events show them, and the zone's flags.
#[derive(Clone, Debug)]
pub(crate) struct ZonePressure {
    /// The number of free pages: the number in the last sample, plus all changes by refills, drains and other
    /// events since this sample.
    pub(crate) free: i64,
    /// The number of free pages that `/proc/zoneinfo` and the watermark checks see. A CPU's changes are added
    /// to this number when the sum of these changes exceeds a threshold, and at the CPU's ticks.
    visible: i64,
    /// For each CPU, the sum of the CPU's changes that are not yet in `visible`.
    pending: Vec<i32>,
    threshold: i32,
    high: i64,
    protection: Vec<i64>,
    /// The largest of `protection`.
    reserve_max: i64,
    /// Free pages that the watermark checks do not count, such as a reserve for atomic requests. No event
    /// reports the number of these pages, so the number is inferred from the kernel's decisions.
    unusable: i64,
    /// The value of `visible` when a drain last cleared the flag `below_high`.
    cleared_at: Option<i64>,
    below_high: bool,
    pub(crate) reclaim_active: bool,
}

impl ZonePressure {
    pub(crate) fn new(zone: &ZoneDescription, cpus: u32) -> Self {
        let free = i64::try_from(zone.free).unwrap_or(i64::MAX / 2);
        let protection: Vec<i64> =
            zone.protection.iter().map(|pages| i64::try_from(*pages).unwrap_or(i64::MAX / 4)).collect();
        Self {
            free,
            visible: free,
            pending: vec![0; cpus as usize],
            threshold: stat_threshold(cpus, zone.managed),
            high: i64::try_from(zone.high).unwrap_or(i64::MAX / 2),
            reserve_max: protection.iter().copied().max().unwrap_or(0),
            protection,
            unusable: 0,
            cleared_at: None,
            below_high: false,
            reclaim_active: false,
        }
    }

    pub(crate) fn flags(&self) -> Pressure {
        Pressure { reclaim_active: self.reclaim_active, below_high: self.below_high }
    }

    /// Sets the flags to the values that a decision of the kernel shows.
    pub(crate) fn learn(&mut self, flags: Pressure) {
        let above = |visible: i64| (visible - self.high - self.reserve(usize::MAX)).clamp(0, self.high);
        match (self.below_high, flags.below_high, self.cleared_at) {
            (false, true, Some(cleared_at)) => self.unusable = self.unusable.max(above(cleared_at)),
            (true, false, _) => self.unusable = self.unusable.min(above(self.visible)),
            _ => {}
        }
        self.cleared_at = None;
        (self.below_high, self.reclaim_active) = (flags.below_high, flags.reclaim_active);
    }

    /// Whether the flags are uncertain: a flag is set, or the visible free pages are fewer than twice the
    /// high watermark.
    pub(crate) fn is_tight(&self) -> bool {
        self.reclaim_active || self.below_high || self.visible < self.high.saturating_mul(2)
    }

    /// Describes the state in words, for a message.
    pub(crate) fn describe(&self) -> String {
        let mut text =
            format!("{} pages free, {} visibly, high watermark {}", self.free, self.visible, self.high);
        for (flag, name) in [(self.below_high, ", below high"), (self.reclaim_active, ", being reclaimed")] {
            text.push_str(if flag { name } else { "" });
        }
        text
    }

    /// Adds `pages` to the free pages. `cpu` is the CPU that frees or takes the pages.
    pub(crate) fn change(&mut self, cpu: usize, pages: i64) {
        self.free += pages;
        let Some(pending) = self.pending.get_mut(cpu) else { return };
        let sum = i64::from(*pending) + pages;
        if sum.abs() > i64::from(self.threshold) {
            self.visible += sum;
            *pending = 0;
        } else {
            *pending = sum as i32;
        }
    }

    /// Adds the CPU's pending changes to the visible number of free pages, as a tick does.
    pub(crate) fn fold(&mut self, cpu: usize) {
        if let Some(pending) = self.pending.get_mut(cpu) {
            self.visible += i64::from(std::mem::take(pending));
        }
    }

    /// Sets the visible number of free pages to the number in a sample.
    pub(crate) fn set_visible(&mut self, free: u64) {
        let free = i64::try_from(free).unwrap_or(i64::MAX / 2);
        self.free += free - self.visible;
        self.visible = free;
    }

    /// Models how an allocation of `pages` with the flags `gfp` checks this zone. If the zone is not above
    /// its high watermark, the check sets the flag `below_high` (spec §2.9).
    pub(crate) fn walk(&mut self, gfp: u32, pages: i64) {
        self.walk_to(highest_zone(gfp), pages);
    }

    /// Models the check of [`walk`](Self::walk), for a request that may use zones up to `highest_zone`.
    #[inline]
    pub(crate) fn walk_to(&mut self, highest_zone: usize, pages: i64) {
        self.cleared_at = None;
        let usable = self.visible - self.unusable - (pages - 1);
        if !self.below_high && usable <= self.high + self.reserve(highest_zone) {
            self.below_high = true;
        }
    }

    /// Whether a check for an allocation of up to eight pages would not change the flag `below_high`.
    #[inline]
    pub(crate) fn ignores_walks(&self) -> bool {
        self.below_high || self.visible - self.unusable - 7 > self.high + self.reserve_max
    }

    /// Models an allocation that found too few pages in this zone, and then tried another zone or reclaimed
    /// memory.
    pub(crate) fn passed(&mut self) {
        self.below_high = true;
        self.cleared_at = None;
    }

    /// Models the end of a drain. If the zone is above its high watermark, clears the flag `below_high` (spec
    /// §2.8).
    pub(crate) fn drained(&mut self) {
        if self.below_high && self.visible - self.unusable > self.high + self.reserve(usize::MAX) {
            self.below_high = false;
            self.cleared_at = Some(self.visible);
        }
    }

    #[inline]
    fn reserve(&self, zone: usize) -> i64 {
        let last = self.protection.len().saturating_sub(1);
        self.protection.get(zone.min(last)).copied().unwrap_or(0)
    }
}

/// The highest zone that a request may use, as the kernel numbers zones on x86-64 (spec §1.13).
pub(crate) const fn highest_zone(gfp: u32) -> usize {
    if gfp & gfp::DMA != 0 {
        0
    } else if gfp & gfp::DMA32 != 0 {
        1
    } else if gfp & (gfp::MOVABLE | gfp::HIGHMEM) == gfp::MOVABLE | gfp::HIGHMEM {
        3
    } else {
        2
    }
}

/// Returns the threshold for the sum of a CPU's changes. Other CPUs see the changes once this sum exceeds the
/// threshold (spec §6).
fn stat_threshold(cpus: u32, managed: u64) -> i32 {
    let fls = |value: u64| u64::from(u64::BITS - value.leading_zeros());
    let chunks = managed >> 15;
    (2 * fls(u64::from(cpus)) * (1 + fls(chunks))).min(125) as i32
}

#[cfg(test)]
mod tests {
    use pageset_core::ZoneKind;

    use super::*;

    #[test]
    fn thresholds_are_those_that_zoneinfo_prints() {
        for (cpus, managed, printed) in [
            (2, 3840, 4),
            (2, 500_943, 20),
            (2, 64_054, 8),
            (4, 108_365, 18),
            (4, 135_119, 24),
            (2, 4_063_232, 32),
        ] {
            assert_eq!(stat_threshold(cpus, managed), printed, "{cpus} CPUs, {managed} frames");
        }
    }

    #[test]
    fn the_flag_is_set_by_a_walk_and_cleared_by_a_drain() {
        let zone = ZoneDescription {
            high: 716,
            free: 730,
            managed: 64_054,
            ..ZoneDescription::empty(0, ZoneKind::Dma32)
        };
        let mut pressure = ZonePressure::new(&zone, 2);
        pressure.walk(0, 1);
        assert!(!pressure.flags().below_high);
        pressure.change(0, -15);
        pressure.walk(0, 1);
        assert!(pressure.flags().below_high);
        pressure.drained();
        assert!(pressure.flags().below_high);
        pressure.change(1, 8);
        pressure.drained();
        assert!(pressure.flags().below_high, "eight pages stay with their CPU");
        pressure.fold(1);
        pressure.drained();
        assert!(!pressure.flags().below_high);
    }

    #[test]
    fn a_cpu_the_machine_does_not_have_changes_nothing_visible() {
        let mut pressure = ZonePressure::new(&ZoneDescription::empty(0, ZoneKind::Dma), 1);
        pressure.change(9, 1000);
        pressure.fold(9);
        assert_eq!(pressure.free, 1000);
    }
}
