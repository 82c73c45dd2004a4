//! A free into the page set: the history it leaves, and whether it is one too many.

use super::limit::scaled;
use super::{Limits, Pcp, Pressure};
use crate::event::DrainReason;
use crate::policy::{FreeHighThreshold, FreeHistory, Policy, PreviousFree, RefillRule};
use crate::{COSTLY_ORDER, Order};

/// A drain that a free calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueDrain {
    /// How many pages, at least.
    pub pages: i32,
    /// What `count` reached; a drain in slices stops below it.
    pub limit: i32,
    /// What it is for.
    pub reason: DrainReason,
}

impl Pcp {
    /// Notes a free of `order` whose block has just been added, and says what to drain (spec §2.8).
    #[inline]
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
        let free_high = self.is_free_high(policy, limits, order);
        if let FreeHistory::Count { .. } = policy.free_history
            && self.free_count < scaled(limits.batch, policy.scale_max)
        {
            self.free_count += order.frames() as i32;
        }
        let limit = self.limit(policy, limits, pressure, free_high);
        (self.count >= limit).then(|| DueDrain {
            pages: self.drain_size(policy, limits.batch, limit, free_high),
            limit,
            reason: if free_high { DrainReason::FreeHigh } else { DrainReason::High },
        })
    }

    /// Whether this free continues a run of high-order frees that should not stay cached.
    #[inline]
    fn is_free_high(&mut self, policy: &Policy, limits: Limits, order: Order) -> bool {
        if !(1..=COSTLY_ORDER).contains(&order.index()) {
            self.previous_was_high_order = false;
            return false;
        }
        let previous_was_high_order = core::mem::replace(&mut self.previous_was_high_order, true);
        let Some(rule) = &policy.free_high else { return false };
        let enough_history = match (policy.free_history, rule.threshold) {
            (FreeHistory::None, _) => false,
            (FreeHistory::Factor { .. }, _) => self.free_factor != 0,
            (FreeHistory::Count { .. }, FreeHighThreshold::Batch) => self.free_count >= limits.batch,
            (FreeHistory::Count { .. }, FreeHighThreshold::BatchAndHalfHighMin) => {
                self.free_count >= limits.batch + limits.high_min / 2
            }
        };
        let follows = match rule.previous {
            PreviousFree::Any => true,
            PreviousFree::HighOrder => previous_was_high_order,
        };
        let keeps = rule.keep_batch.is_some() && self.has_large_slice && self.count < limits.batch;
        enough_history && follows && !keeps
    }

    /// Notes an allocation: half of the free history is forgotten.
    #[inline]
    pub fn note_alloc(&mut self, policy: &Policy) {
        match policy.free_history {
            FreeHistory::None => {}
            FreeHistory::Factor { .. } => self.free_factor >>= 1,
            FreeHistory::Count { .. } => self.free_count >>= 1,
        }
    }
}
