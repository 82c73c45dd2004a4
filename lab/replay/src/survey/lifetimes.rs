//! How long blocks stay allocated.

use serde::Serialize;

use super::{blocks::Found, log2::Log2Counts};

/// From allocation to free, in blocks. A block freed in parts counts once for each part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lifetimes {
    /// Nanoseconds from allocation to free. 0 also where the recording's clock went backwards.
    pub ns: Log2Counts,
    /// Blocks still allocated when the recording ends.
    pub alive_at_end: u64,
    /// Their pages.
    pub alive_pages_at_end: u64,
    /// Frees of blocks whose allocation the recording does not show: older than the recording, allocated in
    /// bulk, or the event is lost.
    pub unmatched_frees: u64,
    /// Pages freed without a known allocation, those in partly known blocks included.
    pub unmatched_pages: u64,
    /// Frees of a part of a larger block.
    pub parts: u64,
    /// Frees of several blocks at once.
    pub freed_together: u64,
    /// Blocks allocated where the recording shows others as allocated: their free is lost.
    pub allocated_twice: u64,
    /// Allocations that were not followed, because the table of blocks was full.
    pub not_followed: u64,
}

impl Lifetimes {
    /// A free of a block of `frames` frames found this.
    #[inline]
    pub(super) fn freed(&mut self, frames: u32, found: Found) {
        self.unmatched_frees += u64::from(found.blocks == 0);
        self.unmatched_pages += u64::from(frames - found.frames);
        self.parts += u64::from(found.is_part);
        self.freed_together += u64::from(found.blocks > 1);
    }
}
