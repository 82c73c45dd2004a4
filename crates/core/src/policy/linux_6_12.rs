//! Linux 6.12, as the stable series has it.

use super::*;

/// Stable 6.12.117: the auto-tuning series as merged, and later changes.
pub const LINUX_6_12: Policy = Policy {
    name: "linux-6.12",
    kernel: "6.12.117",
    summary: "limits tuned automatically; refills double; high-order drains need a run of frees",
    source: "behaviour of stable 6.12.117: the 2023 series as merged (v3), decay in slices, claim-or-take-one fallback",
    lists: ListScheme::TwoHugeLists,
    batch: BatchRule::ZoneShare { cap_bytes: 1 << 20 },
    high: HighRule::ShareToEighth,
    refill: RefillRule::Doubling,
    tuning: Some(Tuning {
        raise: RaiseHigh::UnlessBelowHigh,
        decay: Decay::Eighth,
        below_high: BelowHigh::CheckOnce,
    }),
    free_history: FreeHistory::Count { step: PressureStep::CountOrBatch },
    free_high: FreeHighRule {
        previous: PreviousFree::HighOrder,
        keep_batch: Some(SliceRule { caches: SliceCaches::LastLevel, batches: 3 }),
        threshold: FreeHighThreshold::Batch,
        drains: FreeHighDrains::Capped,
    },
    scale_max: 5,
    decay_drain: DecayDrain::Slices,
    demand_drain: DemandDrain::Chunks,
    buddy: BuddyRules::LINUX_6_12,
};
