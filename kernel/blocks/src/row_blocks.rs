//! Blocks of one order that begin in one row. One exchange takes or frees all blocks of a `RowBlocks`, unless
//! its block is larger than a row.

use pageset_core::{Order, Pfn};

use crate::row::ROW_FRAMES;

/// Some blocks of one order that begin in the same row: 32 frames on 64-bit machines. A block that
/// is larger than a row is alone in its `RowBlocks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBlocks {
    /// The first frame of the row.
    first: Pfn,
    order: Order,
    /// A bit for each block, at its first frame.
    heads: usize,
}

impl RowBlocks {
    /// One block.
    #[must_use]
    #[inline]
    pub const fn of(pfn: Pfn, order: Order) -> Self {
        let frame = pfn.0 % ROW_FRAMES as u64;
        Self { first: Pfn(pfn.0 - frame), order, heads: 1 << frame }
    }

    /// Makes a `RowBlocks` from a bit for each block. `first` is the first frame of the row.
    #[inline]
    pub(crate) const fn from_heads(first: Pfn, order: Order, heads: usize) -> Self {
        Self { first, order, heads }
    }

    /// Adds a block of the same order. Returns `false` if the block lies in another row, or is in this
    /// `RowBlocks` already.
    #[inline]
    pub const fn add(&mut self, pfn: Pfn) -> bool {
        let other = Self::of(pfn, self.order);
        let belongs = self.first.0 == other.first.0 && self.heads & other.heads == 0;
        if belongs {
            self.heads |= other.heads;
        }
        belongs
    }

    /// The order of each block.
    #[must_use]
    #[inline]
    pub const fn order(self) -> Order {
        self.order
    }

    /// The first frame of the row.
    #[must_use]
    #[inline]
    pub const fn first(self) -> Pfn {
        self.first
    }

    /// A bit for each block, at the place of its first frame in the row.
    #[must_use]
    #[inline]
    pub const fn heads(self) -> usize {
        self.heads
    }

    /// A bit for each frame of the blocks, at the frame's place in the row. For a block that is larger than a
    /// row, the bits are those of its first row.
    #[must_use]
    #[inline]
    pub const fn frames(self) -> usize {
        crate::row::frames_of(self.heads, self.order)
    }

    /// How many blocks these are.
    #[must_use]
    #[inline]
    pub const fn len(self) -> usize {
        self.heads.count_ones() as usize
    }

    /// Whether there is no block.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.heads == 0
    }
}

/// The blocks by their first frames, lowest first.
impl Iterator for RowBlocks {
    type Item = Pfn;

    #[inline]
    fn next(&mut self) -> Option<Pfn> {
        let frame = u64::from(self.heads.trailing_zeros());
        self.heads &= self.heads.checked_sub(1)?;
        Some(Pfn(self.first.0 + frame))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        ((*self).len(), Some((*self).len()))
    }
}

impl DoubleEndedIterator for RowBlocks {
    #[inline]
    fn next_back(&mut self) -> Option<Pfn> {
        let frame = self.heads.checked_ilog2()?;
        self.heads &= !(1 << frame);
        Some(Pfn(self.first.0 + u64::from(frame)))
    }
}

impl ExactSizeIterator for RowBlocks {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_one_row_come_lowest_first() {
        let order = Order::new(2).unwrap();
        let row = ROW_FRAMES as u64;
        let mut blocks = RowBlocks::of(Pfn(row + 8), order);
        assert!(blocks.add(Pfn(row)) && blocks.add(Pfn(row + 4)));
        assert!(!blocks.add(Pfn(row)), "it is there already");
        assert!(!blocks.add(Pfn(2 * row)) && !blocks.add(Pfn(0)), "of another row");
        assert_eq!((blocks.first(), blocks.heads(), blocks.order()), (Pfn(row), 0x111, order));
        assert_eq!(ExactSizeIterator::len(&blocks), 3);
        assert!(blocks.rev().eq([row + 8, row + 4, row].map(Pfn)));
        assert!(blocks.eq([row, row + 4, row + 8].map(Pfn)));
    }
}
