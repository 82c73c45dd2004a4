//! Policies of Linux 4.x, with page sets of order 0 and a limit of six batches, and of the 2016 series, which
//! added high orders.

use crate::policy::*;

/// Linux 4.9. In all kernels 4.x, page sets hold only order 0, keep no history of frees, and move `batch`
/// pages at a time.
pub const LINUX_4_9: Policy = Policy {
    name: "linux-4.9",
    kernel: "4.9",
    summary: "order 0 only; batch at most 31; high is six batches; drains go round the lists",
    source: "lines removed by the high-order per-CPU series v5, 2016; batch from the batch-size study, 2018",
    lists: ListScheme::OrderZero,
    batch: BatchRule::ZoneShare { cap_bytes: 512 << 10 },
    high: HighRule::Batches(6),
    refill: RefillRule::BatchOfBlocks,
    free_history: FreeHistory::None,
    free_high: None,
    reclaim: ReclaimLimit::Ignored,
    drain_order: DrainOrder::RoundRobin(FirstList::One),
    demand_drain: DemandDrain::Whole,
    ..LINUX_6_6
};

/// The 2016 series, version 5.
pub const HIGH_ORDER_V5: Policy = Policy {
    name: "linux-4.9-highorder-v5",
    kernel: "4.9 + high-order per-CPU series v5",
    summary: "orders 0 to 3 in six lists; high is eleven batches; a refill is batch blocks of any order",
    source: "high-order per-cpu page allocator v5, Dec 2016",
    lists: ListScheme::HighOrderV5,
    high: HighRule::Batches(11),
    drain_order: DrainOrder::RoundRobin(FirstList::Zero),
    ..LINUX_4_9
};

const REVIEW: &str = "review of the high-order per-cpu page allocator v5, Dec 2016";

/// The reviewers' first proposal: a round-robin drain begins with the list after the one where the last drain
/// stopped.
pub const HIGH_ORDER_V5_LAST_LIST: Policy = Policy {
    name: "linux-4.9-highorder-v5-last-list",
    summary: "as v5; a drain goes on behind the list where the last one stopped",
    source: REVIEW,
    drain_order: DrainOrder::RoundRobin(FirstList::AfterLast),
    ..HIGH_ORDER_V5
};

/// The reviewers' second proposal: a drain begins with lists *in excess*. The review does not define the
/// term. In this policy, a list is in excess if it holds more than an equal share of `high`.
pub const HIGH_ORDER_V5_EXCESS: Policy = Policy {
    name: "linux-4.9-highorder-v5-excess",
    summary: "as v5; a drain takes from the lists that hold more than their share first",
    source: REVIEW,
    drain_order: DrainOrder::ExcessFirst,
    ..HIGH_ORDER_V5
};

/// The reviewers' third proposal: a refill fetches about `batch` pages at every order.
pub const HIGH_ORDER_V5_SCALED_REFILL: Policy = Policy {
    name: "linux-4.9-highorder-v5-scaled-refill",
    summary: "as v5; a refill is about batch pages, so fewer blocks of a higher order",
    source: REVIEW,
    refill: RefillRule::Batch,
    ..HIGH_ORDER_V5
};

const PICKS: &str =
    "free_pcppages_bulk: do not hold lock when picking pages; prefetch buddy; Jan 2018, in Linux 4.17";

/// Linux 4.15 with the first of two patches that shorten a drain's hold of the zone's lock. The drain takes
/// its blocks off the page set before it takes the zone's lock.
pub const LINUX_4_15_PICKS: Policy = Policy {
    name: "linux-4.15-picks",
    kernel: "4.15 + free_pcppages_bulk v1, patch 1",
    summary: "as 4.9; a drain picks its pages before it takes the zone's lock",
    source: PICKS,
    drain_picks: DrainPicks::BeforeLock { prefetches_buddies: false },
    ..LINUX_4_9
};

/// Linux 4.15 with both patches that shorten a drain's hold of the zone's lock. By the second patch, the
/// drain also prefetches the metadata of the blocks' buddies.
pub const LINUX_4_15_PREFETCH: Policy = Policy {
    name: "linux-4.15-prefetch",
    kernel: "4.15 + free_pcppages_bulk v1, patches 1-2",
    summary: "as 4.15-picks; it fetches the metadata of their buddies ahead, too",
    drain_picks: DrainPicks::BeforeLock { prefetches_buddies: true },
    ..LINUX_4_15_PICKS
};

/// Linux 4.18, before the largest batch was doubled.
pub const LINUX_4_18: Policy = Policy {
    name: "linux-4.18",
    kernel: "4.18",
    summary: "as 4.15-prefetch: batch at most 31 pages (512 KiB / 4)",
    source: "double zone's batchsize study, 2018, before",
    ..LINUX_4_15_PREFETCH
};

/// Linux 4.19, which doubled the largest batch, from 31 pages to 63.
pub const LINUX_4_19: Policy = Policy {
    name: "linux-4.19",
    kernel: "4.19",
    summary: "batch at most 63 pages (1 MiB / 4); high is six batches",
    source: "double zone's batchsize study, 2018, after",
    batch: BatchRule::ZoneShare { cap_bytes: 1 << 20 },
    ..LINUX_4_18
};

/// A policy with a given batch and a given limit of `count`, for the batch-size study of 2018.
#[must_use]
pub const fn fixed(batch: i32, high: i32) -> Policy {
    Policy {
        name: "fixed",
        kernel: "none",
        summary: "order 0 only; any batch and high, the same for all zones",
        source: "double zone's batchsize study, 2018, phase one",
        batch: BatchRule::Fixed(batch),
        high: HighRule::Fixed(high),
        ..LINUX_4_19
    }
}
