//! The 2023 series "PCP high auto-tuning", patch by patch as posted (v1).
//!
//! Each policy is the policy before it plus the change of one patch. Two patches change no decision. Patch 2
//! only provides the cache sizes that patch 3 uses, and patch 6 only splits the limit in two.

use crate::policy::*;

const POSTED: &str = "PCP high auto-tuning series v1, 20 Sep 2023";

const PATCH_1_FREE_HIGH: FreeHighRule =
    FreeHighRule { previous: PreviousFree::HighOrder, ..linux_6_6::FREE_HIGH };

/// Patch 1: avoid draining when a process exits.
pub const PATCH_1: Policy = Policy {
    name: "patch1",
    kernel: "6.6 + series v1, patch 1",
    summary: "high-order frees drain only if the previous free was high-order too",
    source: POSTED,
    free_high: Some(PATCH_1_FREE_HIGH),
    ..LINUX_6_6
};

/// Patch 2: provide the CPU's share of the data caches.
pub const PATCH_2: Policy = Policy {
    name: "patch2",
    kernel: "6.6 + series v1, patches 1-2",
    summary: "as patch1; knows cache sizes but does not use them yet",
    ..PATCH_1
};

const PATCH_3_FREE_HIGH: FreeHighRule = FreeHighRule {
    keep_batch: Some(SliceRule { caches: SliceCaches::All, batches: 4 }),
    ..PATCH_1_FREE_HIGH
};

/// Patch 3: reduce lock contention when draining high-order pages.
pub const PATCH_3: Policy = Policy {
    name: "patch3",
    kernel: "6.6 + series v1, patches 1-3",
    summary: "CPUs with a large share of the caches keep a batch of high-order pages",
    free_high: Some(PATCH_3_FREE_HIGH),
    ..PATCH_2
};

/// Patch 4: limit the scale factor of drains.
pub const PATCH_4: Policy = Policy {
    name: "patch4",
    kernel: "6.6 + series v1, patches 1-4",
    summary: "drains grow to 32 batches at most",
    free_history: FreeHistory::Factor { cap: FactorCap::ScaleMax, grows: FactorGrows::Below },
    ..PATCH_3
};

/// Patch 5: scale refills.
pub const PATCH_5: Policy = Policy {
    name: "patch5",
    kernel: "6.6 + series v1, patches 1-5",
    summary: "refills of order 0 double while nothing is freed, to 32 batches at most",
    refill: RefillRule::Doubling,
    ..PATCH_4
};

/// Patch 6: split the limit in two.
pub const PATCH_6: Policy = Policy {
    name: "patch6",
    kernel: "6.6 + series v1, patches 1-6",
    summary: "as patch5; has a lower and an upper limit but uses the lower one",
    high: HighRule::ShareToEighth,
    ..PATCH_5
};

const PATCH_7_FREE_HIGH: FreeHighRule = FreeHighRule { drains: FreeHighDrains::CAPPED, ..PATCH_3_FREE_HIGH };

/// Patch 7: tune the limit automatically.
pub const PATCH_7: Policy = Policy {
    name: "patch7",
    kernel: "6.6 + series v1, patches 1-7",
    summary: "high rises with refills, sinks by a fifth a second; high-order drains are capped",
    tuning: Some(Tuning {
        raise: RaiseHigh::UnlessReclaimActive,
        decay: Decay::FIFTH,
        below_high: BelowHigh::Ignored,
    }),
    free_history: FreeHistory::Factor { cap: FactorCap::ScaleMax, grows: FactorGrows::UpTo },
    free_high: Some(PATCH_7_FREE_HIGH),
    ..PATCH_6
};

/// Patch 8: lower the limit when memory gets short.
pub const PATCH_8: Policy = Policy {
    name: "patch8",
    kernel: "6.6 + series v1, patches 1-8",
    summary: "high does not rise, and sinks with each free, below the zone's high watermark",
    tuning: Some(Tuning {
        raise: RaiseHigh::UnlessBelowHigh,
        decay: Decay::FIFTH,
        below_high: BelowHigh::CheckAlways,
    }),
    ..PATCH_7
};

/// Patch 9: `high` stays while the pages below `high` are used. The merged series does not have this patch.
pub const PATCH_9: Policy = Policy {
    name: "patch9",
    kernel: "6.6 + series v1, patches 1-9",
    summary: "high sinks only by pages that stayed unused since the last second",
    tuning: Some(Tuning {
        raise: RaiseHigh::UnlessBelowHigh,
        decay: Decay::UNUSED_UP_TO_FIFTH,
        below_high: BelowHigh::CheckAlways,
    }),
    ..PATCH_8
};

/// Patch 10: detect consecutive high-order frees sooner.
pub const PATCH_10: Policy = Policy {
    name: "patch10",
    kernel: "6.6 + series v1, patches 1-10",
    summary: "counts freed pages instead of a free factor",
    free_history: FreeHistory::Count { step: PressureStep::Count },
    ..PATCH_9
};
