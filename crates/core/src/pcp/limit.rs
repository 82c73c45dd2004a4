//! When a free drains the page set, and how much: the limit of `count`, and what pressure does to `high`.

use super::Pcp;
use crate::policy::{
    BelowHigh, FactorCap, FactorGrows, FreeHighDrains, FreeHistory, Policy, PressureStep, ReclaimLimit,
};

/// A page set's limits, the same on all CPUs of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Pages a refill or drain moves if nothing else is said; at least 1.
    pub batch: i32,
    /// Lower limit of `high`.
    pub high_min: i32,
    /// Upper limit of `high`. May be below `high_min` in odd machines (spec §2.3).
    pub high_max: i32,
}

/// What the zone's flags say at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// The reclaimer is at work in the zone.
    pub reclaim_active: bool,
    /// The zone was seen below its high watermark.
    pub below_high: bool,
}

/// Bounds `value`; with `low > high` the upper bound is looked at first, as in Linux (spec §0.1).
#[inline]
pub(super) fn kclamp(value: i32, low: i32, high: i32) -> i32 {
    if value >= high {
        high
    } else if value <= low {
        low
    } else {
        value
    }
}

/// `batch · 2^scale`, at most what leaves room for sums.
#[inline]
pub(crate) fn scaled(batch: i32, scale: u8) -> i32 {
    let wide = i64::from(batch) << scale.min(31);
    wide.min(i64::from(i32::MAX / 4)) as i32
}

impl Pcp {
    /// Brings `high` between the limits that apply now; without tuning it is the lower one.
    #[inline]
    pub(super) fn settle_high(&mut self, policy: &Policy, limits: Limits) -> i32 {
        self.high = match policy.tuning {
            Some(_) => kclamp(self.high, limits.high_min, limits.high_max),
            None => limits.high_min,
        };
        self.high
    }

    /// The number of pages from which this free drains (spec §2.8 `pcp_high`). May move `high`.
    #[inline]
    pub(super) fn limit(
        &mut self,
        policy: &Policy,
        limits: Limits,
        pressure: Pressure,
        free_high: bool,
    ) -> i32 {
        let Limits { batch, high_min, high_max } = limits;
        // Nearly every free: `high` is settled, nothing presses, and `count` is below it. Nothing below would change that.
        let is_settled = match policy.tuning {
            Some(_) => high_min <= self.high && self.high <= high_max,
            None => self.high == high_min,
        };
        if is_settled
            && self.high > 0
            && self.count < self.high
            && !free_high
            && pressure == Pressure::default()
        {
            return self.high;
        }
        let high = self.settle_high(policy, limits);
        let Some(tuning) = policy.tuning else {
            let reclaims = pressure.reclaim_active && policy.reclaim == ReclaimLimit::FourBatches;
            return match (high, free_high, reclaims) {
                (0, ..) | (_, true, _) => 0,
                (_, _, true) => high.min(scaled(batch, 2)),
                _ => high,
            };
        };
        if high == 0 {
            return 0;
        }
        if free_high {
            self.high = (high - scaled(batch, policy.scale_max)).max(high_min);
            return 0;
        }
        if pressure.reclaim_active {
            self.high = (high - self.pressure_step(policy, batch)).max(high_min);
            return self.high.min(scaled(batch, 2));
        }
        if high_min == high_max {
            return high;
        }
        if pressure.below_high && tuning.below_high != BelowHigh::Ignored {
            self.high = (high - self.pressure_step(policy, batch)).max(high_min);
            return self.count.max(high_min);
        }
        if self.count >= high {
            let needed = batch
                + match policy.free_history {
                    FreeHistory::Factor { .. } => scaled(batch, self.free_factor),
                    FreeHistory::Count { .. } => self.free_count,
                    FreeHistory::None => 0,
                };
            if high < needed {
                self.high = kclamp(needed, high_min, high_max);
            }
        }
        high
    }

    fn pressure_step(&self, policy: &Policy, batch: i32) -> i32 {
        match policy.free_history {
            FreeHistory::Factor { .. } => scaled(batch, self.free_factor),
            FreeHistory::None => batch,
            FreeHistory::Count { step: PressureStep::Count } => self.free_count,
            FreeHistory::Count { step: PressureStep::CountOrBatch } => self.free_count.max(batch),
        }
    }

    /// How many pages this free drains, given that `count` reached `limit` (spec §2.8 `pcp_free`). May raise the
    /// free factor.
    pub(super) fn drain_size(&mut self, policy: &Policy, batch: i32, limit: i32, free_high: bool) -> i32 {
        if free_high {
            return match policy.free_high.map(|rule| rule.drains) {
                Some(FreeHighDrains::Capped) => self.count.min(scaled(batch, policy.scale_max)),
                Some(FreeHighDrains::All) | None => self.count,
            };
        }
        if limit < batch {
            return 1;
        }
        let room = limit - batch;
        let wanted = match policy.free_history {
            FreeHistory::None => return batch,
            FreeHistory::Count { .. } => self.free_count,
            FreeHistory::Factor { cap, grows } => {
                let wanted = scaled(batch, self.free_factor);
                let fits = match grows {
                    FactorGrows::Below => wanted < room,
                    FactorGrows::UpTo => wanted <= room,
                };
                let capped = cap == FactorCap::ScaleMax && self.free_factor >= policy.scale_max;
                if fits && !capped {
                    self.free_factor += 1;
                }
                wanted
            }
        };
        kclamp(wanted, batch, room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::LINUX_6_12;

    #[test]
    fn the_upper_bound_wins_when_bounds_cross() {
        assert_eq!(kclamp(30_000, 39_833, 16_384), 16_384);
        assert_eq!(kclamp(10, 39_833, 16_384), 39_833);
    }

    fn at(count: i32, high: i32) -> Pcp {
        Pcp { count, high, ..Pcp::with_scheme(LINUX_6_12.lists) }
    }

    const E1: Limits = Limits { batch: 63, high_min: 6862, high_max: 90_112 };

    /// Worked examples E6 and E7: `high` falls by `batch` at each free.
    #[test]
    fn examples_e6_e7_pressure_lowers_high() {
        for (pressure, limit) in [
            (Pressure { below_high: true, reclaim_active: false }, 10_000),
            (Pressure { below_high: false, reclaim_active: true }, 252),
        ] {
            let mut pcp = at(10_000, 20_000);
            for high in [19_937, 19_874, 19_811] {
                assert_eq!(pcp.limit(&LINUX_6_12, E1, pressure, false), limit);
                assert_eq!(pcp.high, high);
            }
        }
    }

    /// Worked example E9: the boot set drains one page at every free.
    #[test]
    fn example_e9_a_disabled_set_keeps_nothing() {
        let boot = Limits { batch: 1, high_min: 0, high_max: 0 };
        let mut pcp = at(1, 0);
        let limit = pcp.limit(&LINUX_6_12, boot, Pressure::default(), false);
        assert_eq!((limit, pcp.drain_size(&LINUX_6_12, boot.batch, limit, false)), (0, 1));
    }
}
