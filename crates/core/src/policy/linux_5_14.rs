//! Linux 5.14, the first kernel whose page sets hold high orders and size their limit by the zone's
//! watermark.

use super::*;

/// As the series' base, but no drain for runs of high-order frees.
///
/// No source of this kernel was at hand: that its page sets drain list by list and that free_high came later
/// is general knowledge, so this policy is an approximation. That a drain takes its pages before the lock was
/// so until 5.18.
pub const LINUX_5_14: Policy = Policy {
    name: "linux-5.14",
    kernel: "5.14",
    summary: "limit follows the low watermark; no drain for runs of high-order frees (approximation)",
    source: "general knowledge: the 2021 changes that split high from batch; not checked against a kernel",
    free_high: None,
    drain_picks: DrainPicks::BeforeLock { prefetches_buddies: true },
    ..LINUX_6_6
};
