//! Counts how long blocks stay allocated.

use serde::Serialize;

use super::{blocks::Found, log2::Log2Counts};
use crate::recorded::{RecordedKinds, needs};

/// How long blocks stay allocated. A block that is freed in parts counts once for each part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lifetimes {
    /// Nanoseconds from allocation to free. The value is 0 if the recording's clock went backwards between
    /// the two events.
    pub ns: Log2Counts,
    /// Number of blocks still allocated when the recording ends.
    pub alive_at_end: u64,
    /// The number of pages in blocks that are still allocated when the recording ends.
    pub alive_pages_at_end: u64,
    /// Number of frees of blocks whose allocation is not in the table. Such an allocation was in bulk, before
    /// the recording, or while the table was full, or its event was lost.
    pub unmatched_frees: u64,
    /// Number of freed pages whose allocation is not in the table. A freed block may have such pages beside
    /// known pages.
    pub unmatched_pages: u64,
    /// Number of frees of a part of a larger block.
    pub parts: u64,
    /// Number of frees of a block that consists of several allocated blocks.
    pub freed_together: u64,
    /// Number of blocks whose frames were allocated again although no free was recorded: the event of the
    /// free was lost.
    pub allocated_twice: u64,
    /// Number of allocations that were not followed, because the table of blocks was full.
    pub not_followed: u64,
}

impl Lifetimes {
    /// Counts what a free of `frames` frames released.
    #[inline]
    pub(super) fn freed(&mut self, frames: u32, found: Found) {
        self.unmatched_frees += u64::from(found.blocks == 0);
        self.unmatched_pages += u64::from(frames - found.frames);
        self.parts += u64::from(found.is_part);
        self.freed_together += u64::from(found.blocks > 1);
    }

    /// The lifetimes, if the recording shows both ends of them.
    pub(super) fn finish(self, recorded: &RecordedKinds) -> Option<Self> {
        recorded.known(needs::LOAD, self)
    }
}
