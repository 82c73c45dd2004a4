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
