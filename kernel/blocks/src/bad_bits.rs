//! Frames that are out of service for good, with a bit for each frame. Few pageblocks have frames out of
//! service, so the table is short.

use crate::atomic::{AcqRel, Acquire, AtomicU32, AtomicUsize, Release, array, constant};
use crate::ids::BlockId;
use crate::row::{FRAMES, ROW_FRAMES, ROWS, rows_of};

/// The frames of one pageblock that are out of service.
#[derive(Debug)]
#[cfg_attr(all(feature = "alloc", not(any(loom, shuttle))), derive(zerocopy::FromZeros))]
pub(crate) struct BadBits {
    /// The number of the pageblock, plus 1. 0 means that the entry is unused. A number other than 0 never
    /// changes.
    block: AtomicU32,
    rows: [AtomicUsize; ROWS],
}

impl Default for BadBits {
    fn default() -> Self {
        Self::new()
    }
}

impl BadBits {
    constant! {
        /// Makes an unused entry of the table.
        #[must_use]
        pub(crate) fn new() -> Self {
            Self { block: AtomicU32::new(0), rows: array!(AtomicUsize::new(0)) }
        }
    }

    /// The number of entries of the table: one for every 32 `pageblocks`, and at least 16. Both numbers are
    /// chosen, not measured.
    pub(crate) const fn entries(pageblocks: usize) -> usize {
        if pageblocks < 512 { 16 } else { pageblocks / 32 }
    }

    /// The entry of a pageblock, if it has one. O(entries).
    pub(crate) fn of(entries: &[Self], block: BlockId) -> Option<&Self> {
        entries.iter().find(|entry| entry.block.load(Acquire) as usize == block.0 + 1)
    }

    /// The entry of a pageblock. Claims a new entry if the pageblock has none. Returns `None` if the table is
    /// full. O(entries).
    pub(crate) fn entry(entries: &[Self], block: BlockId) -> Option<&Self> {
        entries.iter().find(|entry| {
            let taken = entry.block.compare_exchange(0, block.0 as u32 + 1, AcqRel, Acquire);
            taken.is_ok() || taken.is_err_and(|other| other as usize == block.0 + 1)
        })
    }

    pub(crate) fn is_bad(&self, frame: usize) -> bool {
        debug_assert!(frame < FRAMES);
        self.rows[frame / ROW_FRAMES].load(Acquire) >> (frame % ROW_FRAMES) & 1 == 1
    }

    /// Notes that these frames are out of service.
    pub(crate) fn mark(&self, frames: core::ops::Range<usize>) {
        for (row, bits) in rows_of(frames) {
            self.rows[row].fetch_or(bits, AcqRel);
        }
    }

    /// Forgets all bad frames of the pageblock.
    pub(crate) fn clear(&self) {
        self.rows.iter().for_each(|row| row.store(0, Release));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pageblock_has_one_entry_while_there_is_room() {
        let entries = [(); 2].map(|()| BadBits::new());
        assert!(BadBits::of(&entries, BlockId(7)).is_none());
        BadBits::entry(&entries, BlockId(7)).unwrap().mark(3..4);
        BadBits::entry(&entries, BlockId(0)).unwrap().mark(5..6);
        assert!(BadBits::entry(&entries, BlockId(8)).is_none(), "there is no room");
        let bad =
            |block, frame| BadBits::of(&entries, BlockId(block)).is_some_and(|entry| entry.is_bad(frame));
        assert!(bad(7, 3) && !bad(7, 5) && bad(0, 5) && !bad(8, 3));
        BadBits::entry(&entries, BlockId(7)).unwrap().clear();
        assert!(!bad(7, 3) && bad(0, 5));
    }
}
