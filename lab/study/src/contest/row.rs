//! The result of repeating a recording on one allocator.

use pageset_sim::SharedCounts;
use serde::{Deserialize, Serialize};

/// Counts of one allocator while a recording was repeated on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContestRow {
    /// The allocator's name.
    #[serde(rename = "entrant")]
    pub allocator: String,
    /// Number of blocks that the allocator handed out.
    pub allocs: u64,
    /// Number of requests that found no memory.
    pub failures: u64,
    /// Counts of accesses to data of the allocator that several CPUs use.
    #[serde(flatten)]
    pub shared: SharedCounts,
    /// Average number of free frames, over the time of the recording, that CPUs held for themselves. Other
    /// CPUs cannot take frames that a CPU holds for itself.
    pub held_mean: f64,
    /// Largest number of free frames that all CPUs together held for themselves at one time.
    pub held_peak: u64,
    /// Average number of free frames, over the time of the recording, that were reserved for one CPU. Other
    /// CPUs take reserved frames if memory is short.
    pub at_hand_mean: f64,
    /// Number of free frames that CPUs held for themselves after two idle seconds at the end of the
    /// recording.
    pub held_idle: u64,
    /// Number of pageblocks that are completely free after the last event.
    pub whole_at_end: u64,
    /// Number of pageblocks that are completely free when all blocks have been freed and two idle seconds
    /// have passed.
    pub whole_when_gone: u64,
}

impl ContestRow {
    /// Returns the number of times that a CPU changed data that all CPUs of a zone share, plus the number of
    /// contended cache lines.
    #[must_use]
    pub const fn visits(&self) -> u64 {
        self.shared.shared_visits.saturating_add(self.shared.contended_lines)
    }
}
