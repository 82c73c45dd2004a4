//! Linux 6.18, as released and in the stable series.

use super::*;

/// Linux 6.18.44: runs of high-order frees drain only above a higher threshold.
///
/// Later kernels drain frees in slices of `batch`, but 6.18.44 drains them whole. Its recordings show drains
/// of 2016 pages of order 0. Where 2022 pages are due and blocks have order 3, they show 2024: only the last
/// block exceeds the due number. Slices would exceed it once each.
pub const LINUX_6_18: Policy = Policy {
    name: "linux-6.18",
    kernel: "6.18.44",
    summary: "as 6.12; free_high needs batch + high_min/2 pages freed",
    source: "mailing-list post (free_high threshold, 6.16); recordings of 6.18.44",
    free_high: Some(FreeHighRule {
        threshold: FreeHighThreshold::BATCH_AND_HALF_HIGH_MIN,
        ..series::MERGED_FREE_HIGH
    }),
    ..LINUX_6_12
};

/// Releases 6.16 to 6.18.6, before a stable release changed the tick.
///
/// Source: 6.18.7's changelog names the decay in slices.
pub const LINUX_6_18_0: Policy = Policy {
    name: "linux-6.18.0",
    kernel: "6.16 to 6.18.6",
    summary: "as 6.18, but decay drains in one hold of the lock",
    source: "changelog of stable 6.18.7, which changed it; in no kernel that was recorded",
    decay_drain: DecayDrain::Whole,
    ..LINUX_6_18
};
