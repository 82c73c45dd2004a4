//! Linux 5.14: its page sets are the first that hold high orders and take their limit from the zone's
//! watermark.

use super::*;

/// The policy [`LINUX_6_6`] without the drain for runs of high-order frees. As in Linux until 5.18, a drain
/// takes its pages off the page set before it takes the zone's lock.
///
/// The policy is an approximation, because no description of Linux 5.14 was available. According to general
/// knowledge, page sets of Linux 5.14 drain list by list, and free_high came later.
pub const LINUX_5_14: Policy = Policy {
    name: "linux-5.14",
    kernel: "5.14",
    summary: "limit follows the low watermark; no drain for runs of high-order frees (approximation)",
    source: "general knowledge: the 2021 changes that split high from batch; not checked against a kernel",
    free_high: None,
    drain_picks: DrainPicks::BeforeLock { prefetches_buddies: true },
    ..LINUX_6_6
};
