//! Linux 6.18.

use super::*;

/// Linux 6.18.44: a higher threshold before runs of high-order frees drain.
///
/// Later kernels drain frees in slices of `batch`; 6.18.44 drains them whole: its recordings show drains of 2016 pages of
/// order 0, and of 2024 of order 3 where 2022 are due, so that only the last block of all overshoots.
pub const LINUX_6_18: Policy = Policy {
    name: "linux-6.18",
    kernel: "6.18.44",
    summary: "as 6.12; free_high needs batch + high_min/2 pages freed",
    source: "mailing-list post (free_high threshold, 6.16); recordings of 6.18.44",
    free_high: Some(FreeHighRule {
        threshold: FreeHighThreshold::BatchAndHalfHighMin,
        ..series::MERGED_FREE_HIGH
    }),
    ..LINUX_6_12
};

/// A later change on its own: frees drain in slices, between which others get the page set's lock.
pub const SLICED_DRAINS: Policy = Policy {
    name: "linux-6.18-sliced",
    kernel: "6.18 + drains of frees in slices",
    summary: "as 6.18; a drain of a free takes the lock anew for each batch",
    source: "mailing-list post, 2025; in no kernel that was recorded",
    free_drain: FreeDrain::Slices,
    ..LINUX_6_18
};
