//! The result of one allocator.

use pageset_sim::SharedCounts;
use serde::{Deserialize, Serialize};

/// How an allocator did on a recording. Frames are the machine's frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContestRow {
    /// The allocator's name.
    #[serde(rename = "entrant")]
    pub allocator: String,
    /// Blocks that the allocator handed out.
    pub allocs: u64,
    /// Requests that found no memory.
    pub failures: u64,
    /// Counts of how often CPUs used the same data.
    #[serde(flatten)]
    pub shared: SharedCounts,
    /// Frames that CPUs kept back: mean over the recording's time.
    pub held_mean: f64,
    /// Most frames that CPUs kept back.
    pub held_peak: u64,
    /// Free frames intended for one CPU that other CPUs could take: mean over the recording's time.
    pub at_hand_mean: f64,
    /// Frames that CPUs kept back after two idle seconds at the end.
    pub held_idle: u64,
    /// Whole pageblocks that are free after the last event.
    pub whole_at_end: u64,
    /// Whole pageblocks that are free when all blocks have been freed and two idle seconds have passed.
    pub whole_when_gone: u64,
}

impl ContestRow {
    /// Visits to data that all CPUs of a zone share, plus contended lines.
    #[must_use]
    pub const fn visits(&self) -> u64 {
        self.shared.shared_visits.saturating_add(self.shared.contended_lines)
    }
}
