//! What is found of an allocator.

use pageset_sim::SharedCounts;
use serde::{Deserialize, Serialize};

/// How an allocator did on a recording. Frames are frames of the machine's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContestRow {
    /// The allocator's name.
    #[serde(rename = "entrant")]
    pub allocator: String,
    /// Blocks that it allocated.
    pub allocs: u64,
    /// Requests that found no memory.
    pub failures: u64,
    /// Where CPUs met.
    #[serde(flatten)]
    pub shared: SharedCounts,
    /// Frames that CPUs kept back: mean over the recording's time.
    pub held_mean: f64,
    /// The most.
    pub held_peak: u64,
    /// Free frames that were meant for one CPU, but that others could take: mean over the recording's time.
    pub at_hand_mean: f64,
    /// Two idle seconds after the last event.
    pub held_idle: u64,
    /// Pageblocks that are free as a whole after the last event.
    pub whole_at_end: u64,
    /// When all blocks have been freed, and two idle seconds have passed.
    pub whole_when_gone: u64,
}

impl ContestRow {
    /// Times a CPU came to where all CPUs of a zone come, or changed a line that another one was about to change.
    #[must_use]
    pub const fn visits(&self) -> u64 {
        self.shared.shared_visits.saturating_add(self.shared.contended_lines)
    }
}
