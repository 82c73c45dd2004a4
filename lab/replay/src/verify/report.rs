//! The result of a verification: decisions of the kernel, decisions of the policy, and mismatches.

use serde::Serialize;

use super::classes::Mismatches;
use super::explain::Explanation;

/// One recording compared with one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verification {
    /// The path of the recording.
    pub trace: String,
    /// The recorded kernel, as `uname -r`.
    pub kernel: String,
    /// The policy's name.
    pub policy: String,
    /// The mode's name.
    pub mode: &'static str,
    /// Number of events read.
    pub events: u64,
    /// Counts of refills of page sets.
    pub refills: Refills,
    /// Counts of drains that a free caused.
    pub drains: Drains,
    /// Counts of ticks.
    pub decay: Decays,
    /// Counts of comparisons with samples of `/proc/zoneinfo` that were taken while recording.
    pub samples: Samples,
    /// Mismatches by class.
    pub mismatches: Mismatches,
    /// Decisions that depend on a count that an earlier mismatch has shown to be wrong.
    pub undetermined: Undetermined,
    /// Events that could not be compared.
    pub passed_over: PassedOver,
    /// Sentences for the user. For example, a sentence names the compared part of the recording, if a setting
    /// changed.
    pub warnings: Vec<String>,
    /// The mismatch that the user asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explanation>,
}

/// Counts of refills. Policy and kernel agree if they refill at the same moment, with the same number of
/// blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refills {
    /// Number of refills of the kernel, except the first refill of each list.
    pub observed: u64,
    /// Number of refills that the policy decided on.
    pub predicted: u64,
    /// Number of refills that policy and kernel made at the same moment, with the same number of blocks.
    pub exact: u64,
    /// Number of first refills of lists. The contents of a list before its first refill are not known.
    pub cold: u64,
    /// Number of refills of one block for an empty list that wanted one block. The events would be the same
    /// if the block had gone past the page set, so these refills are counted separately.
    pub of_one: u64,
}

/// Counts of drains. Policy and kernel agree if they drain at the same moment, with the same number of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drains {
    /// Number of drains of the kernel after a free.
    pub observed: u64,
    /// Number of drains that the policy decided on.
    pub predicted: u64,
    /// Number of drains that policy and kernel made at the same moment, with the same number of pages.
    pub exact: u64,
    /// Number of drains at the policy's moment that ended after some slices of the due drain. During such a
    /// drain, another CPU had an event in the zone. [`Self::exact`] does not count these drains, because
    /// under the policy these drains would go on.
    pub ended_early: u64,
    /// Number of pages drained from lists whose blocks are all known, including drains by ticks.
    pub identity_pages: u64,
    /// The part of `identity_pages` that the policy drains at the same position of the same drain.
    pub identity_exact: u64,
}

/// Counts of ticks. Policy and kernel agree if they drain the same number of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Decays {
    /// Number of ticks of the kernel.
    pub observed: u64,
    /// Number of ticks with the same number of pages in each zone.
    pub exact: u64,
}

/// Counts of comparisons of a page set's `count` and `high` with a sample. The page set's own CPU took the
/// sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Samples {
    /// Number of comparisons: one for each page set in each sample.
    pub n: u64,
    /// Number of comparisons with the same `count`.
    pub count_exact: u64,
    /// Number of comparisons with the same `high`.
    pub high_exact: u64,
}

/// Counts of decisions that could not be compared, because they depend on a count that is not known. After a
/// mismatch, the model knows only bounds of the count, until a sample or a later decision shows the count.
/// `observed` and `n` include these decisions, and `exact` and the mismatches do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Undetermined {
    /// Number of frees that caused a drain.
    pub drains: u64,
    /// Number of frees that caused no drain.
    pub frees: u64,
    /// Number of comparisons with a sample.
    pub samples: u64,
}

impl Undetermined {
    /// Number of all decisions and samples that could not be compared.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.drains + self.frees + self.samples
    }
}

/// Events that were not compared, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// Number of events about a CPU, order or frame that the machine does not have.
    pub impossible: u64,
    /// Number of blocks that were allocated past their page set, because the page set's lock was busy.
    pub diverted_allocs: u64,
    /// Number of blocks that were freed directly to the zone although a page set could have held them.
    pub diverted_frees: u64,
    /// Number of runs of refill events that no allocation follows.
    pub orphan_refills: u64,
    /// Number of pages drained on demand: before compaction, or by a failing allocation. No policy predicts
    /// these drains.
    pub demand_pages: u64,
}
