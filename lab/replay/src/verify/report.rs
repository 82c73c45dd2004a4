//! The result of a verification: the kernel's decisions, the policy's, and the mismatches.

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
    /// Returns of pages to the zone that a free caused.
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

/// Refills: moment and number of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refills {
    /// The kernel's, each list's first one left out.
    pub observed: u64,
    /// The policy's.
    pub predicted: u64,
    /// The same moment and number.
    pub exact: u64,
    /// The first refill of each list: the list's contents before it are not known.
    pub cold: u64,
    /// Refills of one block. The list was empty and wanted one block, so this may also have been a block past
    /// the page set: the events would be the same.
    pub of_one: u64,
}

/// Drains: moment, number of pages, which pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drains {
    /// The kernel's.
    pub observed: u64,
    /// The policy's.
    pub predicted: u64,
    /// The same moment and number.
    pub exact: u64,
    /// The same moment, and whole slices of the due drain, while another CPU was at the same zone.
    /// [`Self::exact`] does not count these: the policy does not say that the drain ends there.
    pub ended_early: u64,
    /// Pages drained from lists whose contents are known (ticks included).
    pub identity_pages: u64,
    /// Pages that the policy drains at the same place of the same drain.
    pub identity_exact: u64,
}

/// Ticks: the pages that each drains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Decays {
    /// The kernel's.
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
    /// Blocks allocated past a page set that could have given one: its lock was busy.
    pub diverted_allocs: u64,
    /// Blocks freed past a page set that could have taken them.
    pub diverted_frees: u64,
    /// Runs of refill events that no allocation follows.
    pub orphan_refills: u64,
    /// Pages drained on demand (before compaction, by a failing allocation), which no policy predicts.
    pub demand_pages: u64,
}
