//! The state of one CPU at a moment of the recording: unfinished work, and facts about earlier events.

use pageset_core::FrameIndex;
use pageset_core::pcp::DueDrain;
use pageset_trace::Event;

use super::page_set::Home;

/// The state of one CPU.
#[derive(Debug, Default)]
pub(super) struct CpuState {
    /// Drains whose last slices the model has not handled yet.
    pub(super) slices: Vec<Slices>,
    /// Frees that cause a drain, if other events of the CPU come between the free and the drain. For each
    /// free, the index of its event, and the index of the drain's first event.
    pub(super) deferred: Vec<(usize, usize)>,
    /// First frames of blocks that the model has already allocated, although the event of the allocation
    /// comes later.
    pub(super) popped_early: Vec<FrameIndex>,
    pub(super) tick: Option<Tick>,
    pub(super) bulk: Option<Bulk>,
    /// The samples of this CPU that are still to be compared, in reverse order.
    pub(super) samples: Vec<usize>,
    /// The index of the sample between whose two marks the CPU is now.
    pub(super) sampling: Option<usize>,
    /// The last event of a thread on this CPU, and the last event at each level of interrupts.
    pub(super) last_by_level: [Option<usize>; 4],
    /// The event of the last block that was drained on demand, and the page set that held the block.
    pub(super) drained_owner: Option<(usize, usize)>,
    /// The index of the last free on this CPU. `None` if the kernel drained after this free.
    pub(super) last_free: Option<usize>,
}

/// The unfinished drain of a free: other tasks run between two of its slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slices {
    /// The list that the freed block is on.
    pub(super) home: Home,
    /// The index of the first event of the next slice.
    pub(super) next: usize,
    /// The part of the due drain that is left. `None` after a mismatch, because the rest of the due drain is
    /// then unknown.
    pub(super) left: Option<DueDrain>,
    /// Whether the decision to drain depended on a count that was not known.
    pub(super) undetermined: bool,
}

/// A tick that has begun and not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    pub(super) start: Event,
    /// The next zone that the tick visits.
    pub(super) zone: usize,
    /// Whether the model's drain of a zone differed from the kernel's drain in this tick.
    pub(super) differs: bool,
    /// The drain of a zone that other tasks interrupted between two slices.
    pub(super) open: Option<OpenDrain>,
}

/// A tick's drain of one zone that has begun and not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenDrain {
    pub(super) zone: usize,
    /// The part of the due drain that is left. `None` after a mismatch, because the rest of the tick's drain
    /// is then unknown.
    pub(super) left: Option<DueInTick>,
}

/// The pages that a tick drains from one page set: `excess` pages above `high`, in slices of `slice` pages,
/// and `remote` pages of an unused page set of a remote node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DueInTick {
    pub(super) excess: i32,
    pub(super) slice: i32,
    pub(super) remote: i32,
}

/// A bulk allocation that has begun and not ended.
#[derive(Debug)]
pub(super) struct Bulk {
    pub(super) home: Home,
    /// Number of pages that the bulk allocation still has to take.
    pub(super) left: u32,
    /// Number of pages that count as taken from a list with unknown contents. Some of the pages may have come
    /// from a refill.
    pub(super) nameless: u32,
    /// In mode `free`, the sizes of the refills that the model made for this bulk allocation.
    pub(super) wanted: Vec<u32>,
    pub(super) entry: Event,
}
