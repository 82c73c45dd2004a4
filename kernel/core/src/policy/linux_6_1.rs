//! Linux 6.1 of the stable series.

use super::*;

/// Stable 6.1.192: the policy [`LINUX_6_6`] with two back-ports. The back-ports are the cap on the free
/// factor, and a second list for huge pages.
pub const LINUX_6_1: Policy = Policy {
    name: "linux-6.1",
    kernel: "6.1.192",
    summary: "no tuning; free factor capped; one limit per page set",
    source: "behaviour of stable 6.1.192; the 2023 series' patch 4 is back-ported there",
    lists: ListScheme::TwoHugeLists,
    free_history: FreeHistory::Factor { cap: FactorCap::ScaleMax, grows: FactorGrows::Below },
    ..LINUX_6_6
};
