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
    /// Fetches of blocks from the zone.
    pub refills: Refills,
    /// Drains that a free caused.
    pub drains: Drains,
    /// Periodic ticks.
    pub decay: Decays,
    /// Comparisons with `/proc/zoneinfo` while recording.
    pub samples: Samples,
    /// Mismatches by class.
    pub mismatches: Mismatches,
    /// Events that could not be compared.
    pub passed_over: PassedOver,
    /// Which part of the recording is compared, if a setting changed.
    pub warnings: Vec<String>,
    /// The mismatch that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explanation>,
}

/// Refills. Policy and kernel agree if moment and number of blocks are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refills {
    /// Refills of the kernel, without each list's first one.
    pub observed: u64,
    /// Refills of the policy.
    pub predicted: u64,
    /// The same moment and number.
    pub exact: u64,
    /// The first refill of each list: the list's contents before it are not known.
    pub cold: u64,
    /// Refills of one block for an empty list that wanted one block. The events of a block past the page set
    /// would look the same.
    pub of_one: u64,
}

/// Drains. Policy and kernel agree if moment and number of pages are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drains {
    /// Drains of the kernel.
    pub observed: u64,
    /// Drains of the policy.
    pub predicted: u64,
    /// The same moment and number.
    pub exact: u64,
    /// Drains at the right moment that took whole slices of the due drain, while another CPU was at the zone.
    /// Not in [`Self::exact`], since the policy does not say that the drain ends there.
    pub ended_early: u64,
    /// Pages drained from lists whose blocks are all known, ticks included.
    pub identity_pages: u64,
    /// Pages among these that the policy drains at the same place of the same drain.
    pub identity_exact: u64,
}

/// Ticks. Policy and kernel agree if the number of drained pages is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Decays {
    /// Ticks of the kernel.
    pub observed: u64,
    /// The same number of pages in each zone.
    pub exact: u64,
}

/// `count` and `high` of a page set at a moment when its own CPU printed them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Samples {
    /// Page sets compared.
    pub n: u64,
    /// The same `count`.
    pub count_exact: u64,
    /// The same `high`.
    pub high_exact: u64,
}

/// Events that were not compared, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// CPUs, orders or frames that the machine does not have.
    pub impossible: u64,
    /// Blocks that were allocated past a page set although it had one, since its lock was busy.
    pub diverted_allocs: u64,
    /// Blocks that were freed past a page set although it could have held them.
    pub diverted_frees: u64,
    /// Runs of refill events without an allocation after them.
    pub orphan_refills: u64,
    /// Pages drained on demand (before compaction, by a failing allocation), which no policy predicts.
    pub demand_pages: u64,
}
