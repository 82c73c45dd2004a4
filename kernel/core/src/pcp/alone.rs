//! Page sets for programs without an allocator, such as a replay of a recording. A page set may link its
//! blocks, or only count its blocks.

use super::set::{BlockList, ListScheme};
use super::{ListIndex, Pcp};
use crate::Order;
use crate::frame::{FrameIndex, FrameTables};

/// Methods for page sets that link their blocks. A page set that only counts its blocks must not use these
/// methods.
impl Pcp {
    /// Removes a block from any place of a list. The block must be on the list `list`.
    pub fn unlink(&mut self, frames: &FrameTables<'_>, list: ListIndex, frame: FrameIndex, order: Order) {
        self.lists[list].remove(frames, frame);
        self.count -= order.frames() as i32;
    }

    /// The blocks of a list, in the order that allocations take them.
    pub fn blocks<'f>(
        &self,
        frames: &'f FrameTables<'_>,
        list: ListIndex,
    ) -> impl Iterator<Item = FrameIndex> + 'f {
        self.lists[list].iter(frames)
    }
}

/// A list that stores only the number of its blocks.
#[derive(Clone, Copy, Debug)]
pub struct BlockCount(u32);

impl BlockCount {
    /// Adds `blocks` to the number of blocks. A negative `blocks` takes blocks away.
    #[inline]
    pub(super) fn gain(&mut self, blocks: i32) {
        self.0 = self.0.saturating_add_signed(blocks);
    }
}

impl BlockList for BlockCount {
    type Block = ();
    type Frames<'f> = ();
    const EMPTY: Self = Self(0);

    #[inline]
    fn is_empty(&self) -> bool {
        self.0 == 0
    }

    #[inline]
    fn len(&self, (): &()) -> u32 {
        self.0
    }

    #[inline]
    fn push_head(&mut self, (): &(), (): ()) {
        self.0 += 1;
    }

    #[inline]
    fn push_tail(&mut self, (): &(), (): ()) {
        self.0 += 1;
    }

    #[inline]
    fn pop_head(&mut self, (): &()) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }

    #[inline]
    fn pop_tail(&mut self, (): &()) -> Option<()> {
        self.pop_head(&())
    }
}

/// A replay copies a page set to continue several times from one state. A linked frame can be on only one
/// list, so a replay can copy only a page set that counts blocks.
impl Clone for Pcp<BlockCount> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

/// Methods of a page set that only counts its blocks.
impl Pcp<BlockCount> {
    /// An empty page set.
    #[must_use]
    pub fn counted(scheme: ListScheme) -> Self {
        Self::of(scheme)
    }
}
