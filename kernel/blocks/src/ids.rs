//! Places in the tables, as types. So the compiler refuses a place of the wrong kind.
//!
//! The tables have entries for the pageblocks of all zones. Variables called `frame` and `row` are plain
//! numbers: the place of a frame or row in its pageblock.

use core::ops::Range;

use crate::row::FRAMES;

/// A pageblock, by its place in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockId(pub(crate) usize);

impl BlockId {
    /// The pageblock this many further on.
    #[inline]
    pub(crate) const fn after(self, blocks: usize) -> Self {
        Self(self.0 + blocks)
    }
}

/// The pageblocks of a range, lowest first.
#[inline]
pub(crate) fn each(
    blocks: &Range<BlockId>,
) -> impl DoubleEndedIterator<Item = BlockId> + ExactSizeIterator + use<> {
    places(blocks).map(BlockId)
}

/// The places of these pageblocks in the tables.
#[inline]
pub(crate) const fn places(blocks: &Range<BlockId>) -> Range<usize> {
    blocks.start.0..blocks.end.0
}

/// A frame, by its place in the rows of all pageblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameId(pub(crate) usize);

impl FrameId {
    /// The frame at this place of a pageblock. The place after the last is the next pageblock's first frame.
    #[inline]
    pub(crate) const fn of(block: BlockId, frame: usize) -> Self {
        Self(block.0 * FRAMES + frame)
    }

    /// The pageblock of the frame.
    #[inline]
    pub(crate) const fn block(self) -> BlockId {
        BlockId(self.0 / FRAMES)
    }

    /// The place of the frame in its pageblock.
    #[inline]
    pub(crate) const fn in_block(self) -> usize {
        self.0 % FRAMES
    }

    /// The frame this many frames further on.
    #[inline]
    pub(crate) const fn after(self, frames: usize) -> Self {
        Self(self.0 + frames)
    }

    /// Does the same as [`after`](Self::after). Returns `None` if the result does not fit into a `usize`.
    #[inline]
    pub(crate) fn checked_after(self, frames: usize) -> Option<Self> {
        self.0.checked_add(frames).map(Self)
    }
}
