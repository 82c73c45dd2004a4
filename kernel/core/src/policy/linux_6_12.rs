//! Linux 6.12, as released and in the stable series.

use super::*;

/// Releases 6.12.0 to 6.12.66, where a decay drains all pages above `high` under one hold of the lock.
///
/// Source: the changelog of 6.12.67. From 6.12.67 on, decay drains in slices.
pub const LINUX_6_12_0: Policy = Policy {
    name: "linux-6.12.0",
    kernel: "6.12.0 to 6.12.66",
    summary: "as 6.12, but decay drains in one hold of the lock",
    source: "changelog of stable 6.12.67, which changed it; in no kernel that was recorded",
    decay_drain: DecayDrain::Whole,
    ..LINUX_6_12
};

/// Stable 6.12.117: the 2023 series as merged, and later changes.
pub const LINUX_6_12: Policy = Policy {
    name: "linux-6.12",
    kernel: "6.12.117",
    summary: "as 6.7; decay drains in slices; whole pageblocks are claimed or left alone",
    source: "behaviour of stable 6.12.117",
    lists: ListScheme::TwoHugeLists,
    decay_drain: DecayDrain::Slices,
    buddy: BuddyRules::LINUX_6_12,
    ..LINUX_6_7
};
