//! Linux 6.12, as the stable series has it.

use super::*;

/// Stable 6.12.117: the auto-tuning series as merged, and later changes.
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
