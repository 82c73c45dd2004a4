//! Keeps a page set's history of allocations and frees, and makes the page set's decisions. The decisions are
//! the size of a refill, the time and size of a drain, and the value of `high`. The file `tuning` changes
//! only the numbers of a page set. The files `refill` and `drain` move blocks.
//!
//! Each allocation halves the history of frees, and each free halves the history of refills. Drains grow with
//! the history of frees, and refills grow with the history of refills. So a CPU that only frees, or only
//! allocates, moves more pages with each zone visit, up to a limit.

use super::Pcp;
use crate::event::DrainReason;
use crate::policy::{
    BelowHigh, FactorCap, FactorGrows, FreeHistory, Policy, PressureStep, PreviousFree, RaiseHigh,
    ReclaimLimit, RefillRule,
};
use crate::zone::Pressure;
use crate::{COSTLY_ORDER, Order};

/// The limits of a zone's page sets. All CPUs have the same limits for a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of pages that a plain refill or drain moves; at least 1.
    pub batch: i32,
    /// Lower limit of `high`.
    pub high_min: i32,
    /// Upper limit of `high`. On unusual machines the upper limit may be below `high_min` (spec §2.3).
    pub high_max: i32,
}

/// A drain that a free has triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueDrain {
    /// Smallest number of pages to drain. The last block that is drained may bring the drained pages above
    /// the number `pages`.
    pub pages: i32,
    /// The limit that `count` has reached. Under some policies, a drain in slices stops once `count` is below
    /// `limit`.
    pub limit: i32,
    /// Reason for the drain.
    pub reason: DrainReason,
}

/// Clamps `value` to the range from `low` to `high`. Compares `value` with `high` first, as Linux does, so
/// `low` may exceed `high` (spec §0.1). If `low` exceeded `high`, `Ord::clamp` would panic.
#[inline]
pub(super) fn clamp_upper_first(value: i32, low: i32, high: i32) -> i32 {
    if value >= high {
        high
    } else if value <= low {
        low
    } else {
        value
    }
}

/// Returns `batch · 2^scale`, capped so that sums with the result do not overflow.
#[inline]
pub(crate) fn scaled(batch: i32, scale: u8) -> i32 {
    let wide = i64::from(batch) << scale.min(31);
    wide.min(i64::from(i32::MAX / 4)) as i32
}

impl<L> Pcp<L> {
    /// Records an allocation: halves the free history.
    #[inline]
    pub fn note_alloc(&mut self, policy: &Policy) {
        match policy.free_history {
            FreeHistory::None => {}
            FreeHistory::Factor { .. } => self.free_factor >>= 1,
            FreeHistory::Count { .. } => self.free_count >>= 1,
        }
    }

    /// Decides how many blocks of `order` a refill fetches (spec §2.7.2, §3.5, §3.7). The call may raise
    /// `high` and the alloc factor.
    pub fn refill_size(&mut self, policy: &Policy, limits: Limits, pressure: Pressure, order: Order) -> u32 {
        let Limits { batch, high_min, high_max } = limits;
        let mut size = batch;
        if policy.refill == RefillRule::Doubling {
            let mut high = self.clamp_high(policy, limits);
            if high < batch {
                return 1;
            }
            if order == Order::ZERO {
                size = scaled(batch, self.alloc_factor);
            }
            let may_raise = policy.tuning.is_some_and(|tuning| match tuning.raise {
                RaiseHigh::UnlessReclaimActive => !pressure.reclaim_active,
                RaiseHigh::UnlessBelowHigh => !pressure.below_high,
            });
            if may_raise && high_min != high_max {
                high = high.saturating_add(size).min(high_max);
                self.high = high;
            }
            if order == Order::ZERO {
                let room = (high - self.count - batch).max(batch);
                if size <= room && self.alloc_factor < policy.scale_max {
                    self.alloc_factor += 1;
                }
                size = size.min(room);
            }
        }
        if policy.refill == RefillRule::BatchOfBlocks {
            return batch.unsigned_abs();
        }
        // Convert pages to blocks. Fetch at least two blocks, so that the next request finds a block.
        if size > 1 { (size >> order.get()).max(2) as u32 } else { 1 }
    }

    /// Records a free whose block has just been added. Returns the drain that is due, if any (spec §2.8).
    #[inline(always)]
    pub fn note_free(
        &mut self,
        policy: &Policy,
        limits: Limits,
        pressure: Pressure,
        order: Order,
    ) -> Option<DueDrain> {
        if policy.refill == RefillRule::Doubling {
            self.alloc_factor >>= 1;
        }
        let reason = self.drain_reason(policy, limits, order);
        if let FreeHistory::Count { .. } = policy.free_history
            && self.free_count < scaled(limits.batch, policy.scale_max)
        {
            self.free_count += order.frames() as i32;
        }
        let limit = self.limit(policy, limits, pressure, reason);
        (self.count >= limit).then(|| DueDrain {
            pages: self.drain_size(policy, limits.batch, limit, reason),
            limit,
            reason,
        })
    }

    /// The reason that a drain by this free would have. The reason is `FreeHigh` if the free meets the
    /// policy's conditions for free_high, which drains even below `high`.
    #[inline]
    fn drain_reason(&mut self, policy: &Policy, limits: Limits, order: Order) -> DrainReason {
        if !(1..=COSTLY_ORDER).contains(&order.index()) {
            self.previous_was_high_order = false;
            return DrainReason::High;
        }
        let previous_was_high_order = core::mem::replace(&mut self.previous_was_high_order, true);
        let Some(rule) = &policy.free_high else { return DrainReason::High };
        let enough_history = match policy.free_history {
            FreeHistory::None => false,
            FreeHistory::Factor { .. } => self.free_factor != 0,
            FreeHistory::Count { .. } => {
                rule.threshold.is_reached(self.free_count, limits.batch, limits.high_min)
            }
        };
        let follows = match rule.previous {
            PreviousFree::Any => true,
            PreviousFree::HighOrder => previous_was_high_order,
        };
        let keeps = rule.keep_batch.is_some() && self.has_large_slice && self.count < limits.batch;
        if enough_history && follows && !keeps { DrainReason::FreeHigh } else { DrainReason::High }
    }

    /// Clamps `high` to the current limits. Without tuning, `high` is the lower limit.
    #[inline]
    fn clamp_high(&mut self, policy: &Policy, limits: Limits) -> i32 {
        self.high = match policy.tuning {
            Some(_) => clamp_upper_first(self.high, limits.high_min, limits.high_max),
            None => limits.high_min,
        };
        self.high
    }

    /// The limit for this free: the free drains if `count` has reached the limit (spec §2.8 `pcp_high`). May
    /// change `high`.
    #[inline(always)]
    pub(super) fn limit(
        &mut self,
        policy: &Policy,
        limits: Limits,
        pressure: Pressure,
        reason: DrainReason,
    ) -> i32 {
        let Limits { batch, high_min, high_max } = limits;
        // Return early for most frees: `high` is within its limits, there is no pressure, and `count` is
        // below `high`. For most frees, the code after this `if` would therefore change nothing.
        let is_within_limits = match policy.tuning {
            Some(_) => high_min <= self.high && self.high <= high_max,
            None => self.high == high_min,
        };
        if is_within_limits
            && self.high > 0
            && self.count < self.high
            && reason != DrainReason::FreeHigh
            && pressure == Pressure::default()
        {
            return self.high;
        }
        let high = self.clamp_high(policy, limits);
        let Some(tuning) = policy.tuning else {
            let reclaims = pressure.reclaim_active && policy.reclaim == ReclaimLimit::FourBatches;
            return match (high, reason, reclaims) {
                (0, ..) | (_, DrainReason::FreeHigh, _) => 0,
                (_, _, true) => high.min(scaled(batch, 2)),
                _ => high,
            };
        };
        if high == 0 {
            return 0;
        }
        if reason == DrainReason::FreeHigh {
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
                self.high = clamp_upper_first(needed, high_min, high_max);
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

    /// The number of pages that this free drains if `count` has reached `limit` (spec §2.8 `pcp_free`). The
    /// call may raise the free factor.
    pub(super) fn drain_size(&mut self, policy: &Policy, batch: i32, limit: i32, reason: DrainReason) -> i32 {
        if reason == DrainReason::FreeHigh {
            let most = scaled(batch, policy.scale_max);
            return policy.free_high.map_or(self.count, |rule| rule.drains.of(self.count, most));
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
        clamp_upper_first(wanted, batch, room)
    }
}
