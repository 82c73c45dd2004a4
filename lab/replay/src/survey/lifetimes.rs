//! How long blocks stay allocated.

use serde::Serialize;

use super::{blocks::Found, log2::Log2Counts};

/// How long blocks stay allocated. A block that is freed in parts counts once for each part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lifetimes {
    /// Nanoseconds from allocation to free. If the recording's clock went backwards in between, the value is
    /// 0.
    pub ns: Log2Counts,
    /// Blocks still allocated when the recording ends.
    pub alive_at_end: u64,
    /// The number of pages in these blocks.
    pub alive_pages_at_end: u64,
    /// Frees of blocks whose allocation the recording does not show: older than the recording, allocated in
    /// bulk, or the event is lost.
    pub unmatched_frees: u64,
    /// Pages freed without a known allocation, including the unknown part of blocks that are partly known.
    pub unmatched_pages: u64,
    /// Frees of a part of a larger block.
    pub parts: u64,
    /// Frees of several blocks at once.
    pub freed_together: u64,
    /// Blocks allocated at frames that, according to the recording, were still allocated: the earlier frees
    /// were lost.
    pub allocated_twice: u64,
    /// Allocations that were not followed, because the table of blocks was full.
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
}
