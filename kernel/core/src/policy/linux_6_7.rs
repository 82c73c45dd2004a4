//! Linux 6.7, which merged the 2023 series.

use super::*;

pub(super) const FREE_HIGH: FreeHighRule = FreeHighRule {
    previous: PreviousFree::HighOrder,
    keep_batch: Some(SliceRule { caches: SliceCaches::LastLevel, batches: 3 }),
    threshold: FreeHighThreshold::BATCH,
    drains: FreeHighDrains::CAPPED,
};

/// The 2023 series as merged (version 3). Unlike version 1, the merged series lacks patch 9, decays more
/// slowly, and has a simpler rule for caches.
pub const LINUX_6_7: Policy = Policy {
    name: "linux-6.7",
    kernel: "6.7",
    summary: "the auto-tuning series as merged",
    source: "PCP high auto-tuning series v3, 16 Oct 2023",
    high: HighRule::ShareToEighth,
    refill: RefillRule::Doubling,
    tuning: Some(Tuning {
        raise: RaiseHigh::UnlessBelowHigh,
        decay: Decay::EIGHTH,
        below_high: BelowHigh::CheckOnce,
    }),
    free_history: FreeHistory::Count { step: PressureStep::CountOrBatch },
    free_high: Some(FREE_HIGH),
    ..LINUX_6_6
};
