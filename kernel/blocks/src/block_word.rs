//! Blocks of one order that begin in one word of frames. One exchange takes or frees all these blocks.

use pageset_core::{Order, Pfn};

use crate::row::ROW_FRAMES as WORD_FRAMES;

/// Some blocks of one order that begin in the same word of frames: 32 frames on 64-bit machines. A block that
/// is larger than a word is alone in its `BlockWord`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockWord {
    /// The first frame of the word.
    first: Pfn,
    order: Order,
    /// A bit for each block, at its first frame.
    heads: usize,
}

impl BlockWord {
    /// One block.
    #[must_use]
    #[inline]
    pub const fn of(pfn: Pfn, order: Order) -> Self {
        let frame = pfn.0 % WORD_FRAMES as u64;
        Self { first: Pfn(pfn.0 - frame), order, heads: 1 << frame }
    }

    /// Makes a `BlockWord` from a bit for each block. `first` is the first frame of the word.
    #[inline]
    pub(crate) const fn from_heads(first: Pfn, order: Order, heads: usize) -> Self {
        Self { first, order, heads }
    }

    /// Adds a block of the same order. `false` if it lies in another word, or is there already.
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

    /// The first frame of the word.
    #[must_use]
    #[inline]
    pub const fn first(self) -> Pfn {
        self.first
    }

    /// A bit for each block, at the place of its first frame in the word.
    #[must_use]
    #[inline]
    pub const fn heads(self) -> usize {
        self.heads
    }

    /// A bit for each frame of these blocks, at its place in the word. A block that is larger than a word has
    /// only the frames of its first word here.
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
impl Iterator for BlockWord {
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

impl DoubleEndedIterator for BlockWord {
    #[inline]
    fn next_back(&mut self) -> Option<Pfn> {
        let frame = self.heads.checked_ilog2()?;
        self.heads &= !(1 << frame);
        Some(Pfn(self.first.0 + u64::from(frame)))
    }
}

impl ExactSizeIterator for BlockWord {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_one_word_come_lowest_first() {
        let order = Order::new(2).unwrap();
        let word = WORD_FRAMES as u64;
        let mut blocks = BlockWord::of(Pfn(word + 8), order);
        assert!(blocks.add(Pfn(word)) && blocks.add(Pfn(word + 4)));
        assert!(!blocks.add(Pfn(word)), "it is there already");
        assert!(!blocks.add(Pfn(2 * word)) && !blocks.add(Pfn(0)), "of another word");
        assert_eq!((blocks.first(), blocks.heads(), blocks.order()), (Pfn(word), 0x111, order));
        assert_eq!(ExactSizeIterator::len(&blocks), 3);
        assert!(blocks.rev().eq([word + 8, word + 4, word].map(Pfn)));
        assert!(blocks.eq([word, word + 4, word + 8].map(Pfn)));
    }
}
