//! The state of one CPU at a moment of the trace: work that has begun and not ended, and notes about earlier
//! events.

use pageset_core::FrameIndex;
use pageset_core::pcp::DueDrain;
use pageset_trace::Event;

use super::page_set::Home;

/// The state of one CPU.
#[derive(Debug, Default)]
pub(super) struct CpuState {
    /// Drains that go on later.
    pub(super) slices: Vec<Slices>,
    /// Commits whose drain comes later than an interrupt: the free's and the drain's first event.
    pub(super) deferred: Vec<(usize, usize)>,
    /// Blocks whose allocation was done in the model ahead of its event.
    pub(super) popped_early: Vec<FrameIndex>,
    pub(super) tick: Option<Tick>,
    pub(super) bulk: Option<Bulk>,
    /// This CPU's samples that are still to come, last first.
    pub(super) samples: Vec<usize>,
    /// The sample that is being taken, and the event that began it.
    pub(super) sampling: Option<usize>,
    /// The last event at each depth of interrupts.
    pub(super) last_by_level: [Option<usize>; 4],
    /// The last block that was drained on demand, and the page set that held it.
    pub(super) drained_owner: Option<(usize, usize)>,
    /// The last free of this CPU that needed no drain.
    pub(super) last_free: Option<usize>,
}

/// A free's drain that its task has not ended: other tasks run between two slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slices {
    /// The list of the freed block.
    pub(super) home: Home,
    /// The first event of the next slice.
    pub(super) next: usize,
    /// The rest of the drain that the policy wants; `None` after a mismatch.
    pub(super) left: Option<DueDrain>,
}

/// A tick under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    pub(super) start: Event,
    /// The next zone whose drain is due.
    pub(super) zone: usize,
    /// Whether a zone's drain differed.
    pub(super) differs: bool,
}

/// A bulk allocation under way.
#[derive(Debug)]
pub(super) struct Bulk {
    pub(super) home: Home,
    /// Pages that are still to be taken.
    pub(super) left: u32,
    /// Pages that were counted as taken from a list with unknown contents; a refill may have given some of
    /// them.
    pub(super) nameless: u32,
    /// Sizes of the refills that the page set made for it by itself, in mode `free`.
    pub(super) wanted: Vec<u32>,
    pub(super) entry: Event,
}
