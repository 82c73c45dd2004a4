//! Linux 6.18.

use super::*;

/// Linux 6.18.44: a higher threshold before runs of high-order frees drain.
pub const LINUX_6_18: Policy = Policy {
    name: "linux-6.18",
    kernel: "6.18.44",
    summary: "as 6.12; free_high needs batch + high_min/2 pages freed; drains of frees in slices",
    source: "mailing-list posts (free_high threshold, 6.16; drains in slices, 2025); recordings of 6.18.44",
    free_high: Some(FreeHighRule {
        threshold: FreeHighThreshold::BatchAndHalfHighMin,
        ..series::MERGED_FREE_HIGH
    }),
    ..LINUX_6_12
};
