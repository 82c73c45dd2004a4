//! One CPU's page set of one zone: the core's page set, and its unknown parts.

use std::fmt;

use pageset_core::pcp::{DrainFrom, Limits, ListIndex, Pcp, Pressure};
use pageset_core::policy::{DrainOrder, FreeHistory, RefillRule};
use pageset_core::{FrameIndex, FrameTables, Order, Policy};

use super::doubt::Doubt;

/// Maximum number of lists in a page set.
const LISTS_MAX: usize = 16;

/// The numbers (*scalars*) that a page set's decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scalars {
    pub(super) count: i32,
    pub(super) high: i32,
    pub(super) free_count: i32,
    pub(super) free_factor: u8,
    pub(super) alloc_factor: u8,
    pub(super) previous_was_high_order: bool,
}

impl fmt::Display for Scalars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, high, free_count, free_factor, alloc_factor, previous_was_high_order } = self;
        write!(f, "count {count}, high {high}, alloc factor {alloc_factor}, ")?;
        write!(f, "free count {free_count}, free factor {free_factor}, ")?;
        f.write_str(if *previous_was_high_order {
            "last free of high order"
        } else {
            "last free of low order"
        })
    }
}

/// One list of one page set: the index of the page set, and the index of the list in the page set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) set: usize,
    pub(super) list: ListIndex,
}

/// A page set.
#[derive(Debug)]
pub(super) struct PageSet {
    pub(super) pcp: Pcp,
    pub(super) limits: Limits,
    /// For each list, the number of blocks whose frames are known.
    len: [u32; LISTS_MAX],
    /// A bit for each list: whether the frames of all blocks on the list are known.
    warm: u16,
    /// A second page set. The recording does not show what the page set did before the recording began. `pcp`
    /// begins with one extreme of the possible history, and `shadow` with the other extreme. While both page
    /// sets make the same decisions, the unknown history does not matter. `None` as soon as both page sets
    /// have the same numbers.
    shadow: Option<Box<Pcp>>,
    /// Whether this CPU has changed the zone's counters since its last tick.
    pub(super) touched: bool,
    /// Whether `expire` is known: the number of ticks until an unused page set of a remote node is drained.
    pub(super) expire_known: bool,
    /// Whether `count` is known.
    pub(super) count_known: bool,
    /// The bounds of the kernel's count, around the model's count.
    pub(super) doubt: Doubt,
    /// Maximum number of pages that the kernel's count may lie above the model's count, because the last free
    /// did not drain. `None` if the last free drained, or if the limit of the last free is not known.
    pub(super) above_at_most: Option<i32>,
    /// The state of the model when a sample begins: whether `count` and `high` equal the sample's values, and
    /// the value of `count`.
    pub(super) sampled: (bool, bool, i32),
    /// Differences of the model's `count` and `high` from the last sample.
    pub(super) sample_error: (i32, i32),
}

impl PageSet {
    pub(super) fn new(policy: &Policy, limits: Limits, has_large_slice: bool) -> Self {
        let mut pcp = Pcp::with_scheme(policy.lists);
        pcp.has_large_slice = has_large_slice;
        let mut shadow = Pcp::with_scheme(policy.lists);
        shadow.has_large_slice = has_large_slice;
        match policy.free_history {
            FreeHistory::None => {}
            FreeHistory::Factor { .. } => pcp.free_factor = policy.scale_max,
            FreeHistory::Count { .. } => {
                pcp.free_count = limits.batch.saturating_mul(1 << policy.scale_max.min(8));
            }
        }
        if policy.refill == RefillRule::Doubling {
            shadow.alloc_factor = policy.scale_max;
        }
        pcp.previous_was_high_order = true;
        Self {
            pcp,
            limits,
            len: [0; LISTS_MAX],
            warm: 0,
            shadow: Some(Box::new(shadow)),
            touched: false,
            expire_known: false,
            count_known: false,
            doubt: Doubt::default(),
            above_at_most: None,
            sampled: (false, false, 0),
            sample_error: (0, 0),
        }
    }

    /// The smallest and the largest count that the kernel may have.
    pub(super) fn bounds(&self) -> (i32, i32) {
        self.doubt.bounds(self.pcp.count)
    }

    /// Sets the bounds of the kernel's count.
    pub(super) fn narrow(&mut self, low: i32, high: i32) {
        self.pcp.count = self.pcp.count.clamp(low, high);
        self.doubt = Doubt::around(self.pcp.count, (low, high));
    }

    pub(super) fn scalars(&self) -> Scalars {
        let pcp = &self.pcp;
        Scalars {
            count: pcp.count,
            high: pcp.high,
            free_count: pcp.free_count,
            free_factor: pcp.free_factor,
            alloc_factor: pcp.alloc_factor,
            previous_was_high_order: pcp.previous_was_high_order,
        }
    }

    pub(super) fn set_scalars(&mut self, scalars: Scalars) {
        let pcp = &mut self.pcp;
        pcp.count = scalars.count;
        pcp.high = scalars.high;
        pcp.free_count = scalars.free_count;
        pcp.free_factor = scalars.free_factor;
        pcp.alloc_factor = scalars.alloc_factor;
        pcp.previous_was_high_order = scalars.previous_was_high_order;
    }

    /// The numbers of the shadow, which began with the other extreme of the possible history. `None` if the
    /// numbers of both page sets are equal.
    pub(super) fn other_scalars(&self) -> Option<Scalars> {
        let shadow = self.shadow.as_ref()?;
        Some(Scalars {
            free_count: shadow.free_count,
            free_factor: shadow.free_factor,
            alloc_factor: shadow.alloc_factor,
            previous_was_high_order: shadow.previous_was_high_order,
            ..self.scalars()
        })
    }

    /// Lets the core make a decision, on the page set and on its shadow.
    pub(super) fn decide<T>(&mut self, decision: impl Fn(&mut Pcp) -> T) -> T {
        if let Some(shadow) = &mut self.shadow {
            (shadow.count, shadow.high) = (self.pcp.count, self.pcp.high);
            decision(shadow);
            let outcome = decision(&mut self.pcp);
            self.forget_shadow_if_equal();
            return outcome;
        }
        decision(&mut self.pcp)
    }

    fn forget_shadow_if_equal(&mut self) {
        if self.other_scalars() == Some(self.scalars()) {
            self.shadow = None;
        }
    }

    /// Drops the shadow, because the page set's numbers are now known.
    pub(super) fn reveal(&mut self) {
        self.shadow = None;
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.shadow.is_some()
    }

    pub(super) fn note_alloc(&mut self, policy: &Policy) {
        self.decide(|pcp| pcp.note_alloc(policy));
    }

    pub(super) fn refill_size(&mut self, policy: &Policy, pressure: Pressure, order: Order) -> u32 {
        let limits = self.limits;
        self.decide(|pcp| pcp.refill_size(policy, limits, pressure, order))
    }

    pub(super) fn len(&self, list: ListIndex) -> u32 {
        self.len[list % LISTS_MAX]
    }

    pub(super) fn is_warm(&self, list: ListIndex) -> bool {
        self.warm >> (list % LISTS_MAX) & 1 != 0
    }

    /// Records that a list is empty. From this moment on, the contents of the list are known.
    pub(super) fn warm_up(&mut self, list: ListIndex) {
        self.warm |= 1 << (list % LISTS_MAX);
    }

    pub(super) fn push(
        &mut self,
        frames: &FrameTables<'_>,
        list: ListIndex,
        frame: FrameIndex,
        order: Order,
    ) {
        self.pcp.push(frames, list, frame, order);
        self.len[list % LISTS_MAX] += 1;
    }

    pub(super) fn append(
        &mut self,
        frames: &FrameTables<'_>,
        list: ListIndex,
        frame: FrameIndex,
        order: Order,
    ) {
        self.pcp.append(frames, list, frame, order);
        self.len[list % LISTS_MAX] += 1;
    }

    pub(super) fn unlink(&mut self, frames: &FrameTables<'_>, list: ListIndex, frame: FrameIndex) {
        self.pcp.unlink(frames, list, frame, self.pcp.scheme().order(list));
        self.len[list % LISTS_MAX] -= 1;
    }

    pub(super) fn head(&self, frames: &FrameTables<'_>, list: ListIndex) -> Option<FrameIndex> {
        self.pcp.blocks(frames, list).next()
    }

    /// Counts the pages that a drain takes before it reaches a list with unknown blocks. The drain begins
    /// with list `start`, and visits the lists one after the other.
    pub(super) fn known_pages(&self, start: ListIndex) -> i32 {
        let scheme = self.pcp.scheme();
        let lists = scheme.lists();
        (0..lists)
            .map(|step| (start + step) % lists)
            .take_while(|list| self.is_warm(*list))
            .map(|list| self.len(list) as i32 * scheme.order(list).frames() as i32)
            .sum()
    }

    /// Removes blocks in the core's drain order, and adds them to `removed`.
    pub(super) fn remove(
        &mut self,
        frames: &FrameTables<'_>,
        order: DrainOrder,
        (pages, start): (i32, ListIndex),
        removed: &mut Vec<(FrameIndex, Order)>,
    ) {
        let count = self.pcp.count;
        // Make `count` large enough: the core removes at most `count` pages, but here only the contents of
        // the lists matter.
        self.pcp.count = count.max(pages);
        let from = DrainFrom { pages, list: start };
        self.pcp.remove(frames, order, from, |frame, order| removed.push((frame, order)));
        let taken: i32 = removed.iter().map(|(_, order)| order.frames() as i32).sum();
        self.pcp.count = count - taken;
    }

    /// Counts the blocks on each list again.
    pub(super) fn recount(&mut self, frames: &FrameTables<'_>) {
        for list in 0..self.pcp.scheme().lists() {
            if self.len[list] > 0 {
                self.len[list] = self.pcp.blocks(frames, list).count() as u32;
            }
        }
    }

    /// Reduces the list's length after [`remove`](Self::remove) has taken a block from the list.
    pub(super) fn note_removed(&mut self, list: ListIndex) {
        let len = &mut self.len[list % LISTS_MAX];
        *len = len.saturating_sub(1);
    }
}
