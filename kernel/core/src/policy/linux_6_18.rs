//! Linux 6.18, as released and in the stable series.

use super::*;

/// Linux 6.18.44: a run of high-order frees drains a page set only after more freed pages than in Linux 6.12.
///
/// In later kernels a free drains in slices of `batch`, but in 6.18.44 a free drains all due pages at once.
/// Evidence: recordings of 6.18.44 have drains of 2016 pages of order 0. In one recorded drain of blocks of
/// order 3, 2022 pages were due, and 2024 pages were drained. So only the last block exceeded the due pages.
/// In a drain in slices, the last block of each slice would exceed the pages of its slice.
pub const LINUX_6_18: Policy = Policy {
    name: "linux-6.18",
    kernel: "6.18.44",
    summary: "as 6.12; free_high needs batch + high_min/2 pages freed",
    source: "mailing-list post (free_high threshold, 6.16); recordings of 6.18.44",
    free_high: Some(FreeHighRule {
        threshold: FreeHighThreshold::BATCH_AND_HALF_HIGH_MIN,
        ..linux_6_7::FREE_HIGH
    }),
    ..LINUX_6_12
};

/// Releases 6.16 to 6.18.6, where a decay drains all pages above `high` under one hold of the lock.
///
/// Source: the changelog of 6.18.7. From 6.18.7 on, decay drains in slices.
pub const LINUX_6_18_0: Policy = Policy {
    name: "linux-6.18.0",
    kernel: "6.16 to 6.18.6",
    summary: "as 6.18, but decay drains in one hold of the lock",
    source: "changelog of stable 6.18.7, which changed it; in no kernel that was recorded",
    decay_drain: DecayDrain::Whole,
    ..LINUX_6_18
};
