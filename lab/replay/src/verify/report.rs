//! The result of a verification: decisions of the kernel, decisions of the policy, and mismatches.

use serde::Serialize;

use super::classes::Mismatches;
use super::explain::Explanation;

/// One recording compared with one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verification {
    /// The file.
    pub trace: String,
    /// The recorded kernel, as `uname -r`.
    pub kernel: String,
    /// The policy's name.
    pub policy: String,
    /// The mode's name.
    pub mode: &'static str,
    /// Events read.
    pub events: u64,
    /// Counts of fetches of blocks from the zone.
    pub refills: Refills,
    /// Counts of drains that a free caused.
    pub drains: Drains,
    /// Periodic ticks.
    pub decay: Decays,
    /// Comparisons with samples of `/proc/zoneinfo` that were taken while recording.
    pub samples: Samples,
    /// Mismatches by class.
    pub mismatches: Mismatches,
    /// Events that could not be compared.
    pub passed_over: PassedOver,
    /// Which part of the recording was compared, if a setting changed.
    pub warnings: Vec<String>,
    /// The mismatch that the user asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explanation>,
}

/// Counts of refills. Policy and kernel agree if the moment and the number of blocks are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refills {
    /// Refills of the kernel, without each list's first one.
    pub observed: u64,
    /// Number of refills that the policy decided on.
    pub predicted: u64,
    /// Refills that policy and kernel made at the same moment, with the same number of blocks.
    pub exact: u64,
    /// The first refills of lists, whose contents before are not known.
    pub cold: u64,
    /// Refills of one block for an empty list that wanted one block. The events would be the same if the
    /// block had gone past the page set, so these refills are counted separately.
    pub of_one: u64,
}

/// Counts of drains. Policy and kernel agree if the moment and the number of pages are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drains {
    /// Number of drains of the kernel.
    pub observed: u64,
    /// Number of drains that the policy decided on.
    pub predicted: u64,
    /// Drains that policy and kernel made at the same moment, with the same number of pages.
    pub exact: u64,
    /// Drains at the right moment that took whole slices of the due drain, while another CPU was at the zone.
    /// These drains are not in [`Self::exact`], because the policy does not say that the drain ends there.
    pub ended_early: u64,
    /// Pages drained from lists whose blocks are all known, ticks included.
    pub identity_pages: u64,
    /// The part of `identity_pages` that the policy drains at the same place of the same drain.
    pub identity_exact: u64,
}

/// Ticks. Policy and kernel agree if the number of drained pages is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Decays {
    /// Number of ticks of the kernel.
    pub observed: u64,
    /// Ticks with the same number of pages in each zone.
    pub exact: u64,
}

/// Counts of comparisons of a page set's `count` and `high` with a sample, which the page set's own CPU took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Samples {
    /// Page sets compared.
    pub n: u64,
    /// Comparisons with the same `count`.
    pub count_exact: u64,
    /// Comparisons with the same `high`.
    pub high_exact: u64,
}

/// Events that were not compared, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// Events about CPUs, orders or frames that the machine does not have.
    pub impossible: u64,
    /// Blocks that were allocated without a page set although it had one, because its lock was busy.
    pub diverted_allocs: u64,
    /// Blocks that were freed directly to the zone although a page set could have held them.
    pub diverted_frees: u64,
    /// Runs of refill events that no allocation follows.
    pub orphan_refills: u64,
    /// Pages drained on demand (before compaction, by a failing allocation), which no policy predicts.
    pub demand_pages: u64,
}
