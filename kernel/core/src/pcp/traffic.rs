//! Plays several allocations and frees in one step, on a page set that only counts its blocks.
//!
//! Between a refill and a drain, allocations and frees only change numbers. A [`Traffic`] is the sum of the
//! changes that several operations make. A program computes a sum once, and plays the sum on any number of
//! page sets, under any policy whose lists hold the blocks' orders. The program must not play a sum if one of
//! its operations would refill or drain the page set, or change the page set's limit. In that case, the
//! program plays the operations one by one.

use super::alone::BlockCount;
use super::set::BlockList as _;
use super::tuning::scaled;
use super::{Limits, ListIndex, Pcp};
use crate::policy::{BelowHigh, FreeHistory, Policy, RefillRule};
use crate::zone::Pressure;
use crate::{COSTLY_ORDER, Order};

/// The sum of some allocations and frees of one page set.
///
/// # Invariants
/// A sum has at most [`BLOCKS_MAX`](Self::BLOCKS_MAX) blocks, of orders up to [`ORDER_MAX`](Self::ORDER_MAX),
/// so no field overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The pages of all frees, summed. A free of `p` pages after `k` allocations adds `p << k`. Bulk
    /// allocations do not count in `k`. A page set's history of `n` pages becomes `(n + history) >>
    /// halvings`, because `(n >> 1) + m` equals `(n + 2 * m) >> 1`.
    history: u64,
    /// Number of pages that the page set gains; negative if the page set loses pages.
    pages: i16,
    /// The largest gain in pages after any of the frees, and the smallest gain after any of the allocations.
    most: i16,
    fewest: i16,
    freed_pages: u16,
    halvings: u8,
    frees: u8,
    /// Whether any free is of order 1 to 3, and whether the last free is.
    has_high_order: bool,
    ends_high_order: bool,
}

impl Traffic {
    /// The sum of no operations.
    pub const NONE: Self = Self {
        history: 0,
        pages: 0,
        most: i16::MIN,
        fewest: i16::MAX,
        freed_pages: 0,
        halvings: 0,
        frees: 0,
        has_high_order: false,
        ends_high_order: false,
    };
    /// A `Traffic` may be the sum of at most this number of blocks.
    pub const BLOCKS_MAX: usize = 32;
    /// A block in a `Traffic` may have at most this order.
    pub const ORDER_MAX: usize = COSTLY_ORDER;

    /// Adds the allocation of one block to the sum.
    pub fn alloc(&mut self, order: Order) {
        self.halvings += 1;
        self.bulk_alloc(order);
    }

    /// Adds one block of a bulk allocation to the sum. A bulk allocation does not change the history of
    /// frees.
    pub fn bulk_alloc(&mut self, order: Order) {
        self.pages -= order.frames() as i16;
        self.fewest = self.fewest.min(self.pages);
    }

    /// Adds a free of a block.
    pub fn free(&mut self, order: Order) {
        let pages = order.frames() as u16;
        self.frees += 1;
        self.freed_pages += pages;
        self.history += u64::from(pages) << self.halvings;
        self.pages += pages as i16;
        self.most = self.most.max(self.pages);
        self.ends_high_order = order != Order::ZERO;
        self.has_high_order |= self.ends_high_order;
    }

    /// Number of pages that the page set gains; negative if the page set loses pages.
    #[must_use]
    pub const fn pages(&self) -> i32 {
        self.pages as i32
    }

    /// Number of pages of all frees together.
    #[must_use]
    pub const fn freed_pages(&self) -> u32 {
        self.freed_pages as u32
    }
}

impl Pcp<BlockCount> {
    /// Returns `true` only if no free of `traffic` drains this page set or changes its limit.
    #[inline]
    #[must_use]
    pub fn has_room_for(
        &self,
        policy: &Policy,
        limits: Limits,
        pressure: Pressure,
        traffic: &Traffic,
    ) -> bool {
        if traffic.frees == 0 {
            return true;
        }
        let is_within_limits = match policy.tuning {
            Some(_) => limits.high_min <= self.high && self.high <= limits.high_max,
            None => self.high == limits.high_min,
        };
        let heeds_below_high = || policy.tuning.is_some_and(|tuning| tuning.below_high != BelowHigh::Ignored);
        let is_calm = !(pressure.reclaim_active || pressure.below_high && heeds_below_high());
        if !is_within_limits || !is_calm || self.count + i32::from(traffic.most) >= self.high {
            return false;
        }
        let freed = i32::from(traffic.freed_pages);
        let drains = policy.free_high.filter(|_| traffic.has_high_order);
        match policy.free_history {
            FreeHistory::None => true,
            FreeHistory::Factor { .. } => drains.is_none() || self.free_factor == 0,
            FreeHistory::Count { .. } => {
                let counted = self.free_count.saturating_add(freed);
                (self.stops_counting(policy, limits, traffic) || counted < count_cap(policy, limits))
                    && drains
                        .is_none_or(|rule| !rule.threshold.is_reached(counted, limits.batch, limits.high_min))
            }
        }
    }

    /// Whether the count of freed pages is at its cap, and `traffic` does not change the count.
    #[inline]
    fn stops_counting(&self, policy: &Policy, limits: Limits, traffic: &Traffic) -> bool {
        traffic.halvings == 0 && self.free_count >= count_cap(policy, limits)
    }

    /// Whether the list has at least `blocks` blocks.
    #[inline]
    #[must_use]
    pub fn has_blocks(&self, list: ListIndex, blocks: u32) -> bool {
        self.lists[list].len(&()) >= blocks
    }

    /// Plays `traffic` on the page set's numbers. Before a call of `pass`, the caller must check
    /// [`has_room_for`](Self::has_room_for) and [`has_blocks`](Self::has_blocks). This method does not change
    /// the lists, so the caller must also call [`gain`](Self::gain).
    #[inline]
    pub fn pass(&mut self, policy: &Policy, limits: Limits, traffic: &Traffic) {
        match policy.free_history {
            FreeHistory::Factor { .. } => {
                self.free_factor = self.free_factor.checked_shr(u32::from(traffic.halvings)).unwrap_or(0);
            }
            FreeHistory::Count { .. } if !self.stops_counting(policy, limits, traffic) => {
                let counted = u64::from(self.free_count.unsigned_abs()) + traffic.history;
                self.free_count = (counted >> traffic.halvings) as i32;
            }
            FreeHistory::Count { .. } | FreeHistory::None => {}
        }
        if policy.refill == RefillRule::Doubling {
            self.alloc_factor = self.alloc_factor.checked_shr(u32::from(traffic.frees)).unwrap_or(0);
        }
        if traffic.frees > 0 {
            self.previous_was_high_order = traffic.ends_high_order;
        }
        self.count_min = self.count_min.min(self.count + i32::from(traffic.fewest));
        self.count += i32::from(traffic.pages);
    }

    /// Raises the number of blocks that a list counts. A negative `blocks` lowers this number. The count of
    /// pages does not change.
    #[inline]
    pub fn gain(&mut self, list: ListIndex, blocks: i32) {
        self.lists[list].gain(blocks);
    }
}

/// The cap on the count of freed pages: a free does not raise a count that has reached the cap.
#[inline]
fn count_cap(policy: &Policy, limits: Limits) -> i32 {
    scaled(limits.batch, policy.scale_max)
}
