//! Linux 6.6, the base of all policies.

use super::*;

/// The kernel that the 2023 series was based on: a 6.6 release candidate.
pub const LINUX_6_6: Policy = Policy {
    name: "linux-6.6",
    kernel: "6.6",
    summary: "the auto-tuning series' base: any high-order free after a drain empties the page set",
    source: "PCP high auto-tuning series v1, 20 Sep 2023, before patch 1",
    lists: ListScheme::OneHugeList,
    batch: BatchRule::ZoneShare { cap_bytes: 1 << 20 },
    high: HighRule::Share,
    refill: RefillRule::Batch,
    tuning: None,
    free_history: FreeHistory::Factor { cap: FactorCap::Room, grows: FactorGrows::Below },
    free_high: Some(FREE_HIGH),
    reclaim: ReclaimLimit::FourBatches,
    drain_order: DrainOrder::ListByList,
    counting: Counting::Pages,
    drain_picks: DrainPicks::UnderLock,
    free_drain: FreeDrain::Whole,
    split_frees: SplitFrees::Singly,
    scale_max: 5,
    decay_drain: DecayDrain::Whole,
    demand_drain: DemandDrain::Chunks,
    buddy: BuddyRules::LINUX_6_1,
    ownership: None,
};

pub(super) const FREE_HIGH: FreeHighRule = FreeHighRule {
    previous: PreviousFree::Any,
    keep_batch: None,
    threshold: FreeHighThreshold::BATCH,
    drains: FreeHighDrains::ALL,
};
