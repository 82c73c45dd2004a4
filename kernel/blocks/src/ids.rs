//! Places in the tables, as types. So the compiler refuses one kind of place where another belongs.
//!
//! The tables have entries for the pageblocks of all zones. Three other places are plain numbers. `frame` is
//! the place of a frame within its pageblock, and `row` that of a row. In the arrays of a CPU, `place` is the
//! place of a frame within the zone.

use crate::index::BlockIndex;
use crate::row::FRAMES;

/// A frame, by its place in the rows of all pageblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameId(pub(crate) usize);

impl FrameId {
    /// The frame at this place of a pageblock. The place after the last is the next pageblock's first frame.
    #[inline]
    pub(crate) const fn of(block: BlockIndex, frame: usize) -> Self {
        Self(block * FRAMES + frame)
    }

    /// The pageblock of the frame.
    #[inline]
    pub(crate) const fn block(self) -> BlockIndex {
        self.0 / FRAMES
    }

    /// The place of the frame in its pageblock.
    #[inline]
    pub(crate) const fn in_block(self) -> usize {
        self.0 % FRAMES
    }

    /// The frame this many frames further on.
    pub(crate) const fn after(self, frames: usize) -> Self {
        Self(self.0 + frames)
    }

    /// Does the same as [`after`](Self::after). Returns `None` if the result is too large.
    pub(crate) fn checked_after(self, frames: usize) -> Option<Self> {
        self.0.checked_add(frames).map(Self)
    }
}
