//! A block or a run of frames, encoded in one word.

use std::ops::Range;

use pageset_core::Order;

use crate::arrays::{Class, StackAt};

/// A block or a run of frames, and the array for the block. Bits 0 to 31 are the first frame, bits 32 to 46
/// are the number of frames, and bits 48 to 63 are the array (0 for no array).
///
/// A [loose](Self::loose) run has bit 63 set. The number of frames of a loose run, minus one, has its low 15
/// bits in bits 32 to 46, and its high 15 bits in bits 48 to 62.
///
/// The span is one word, so that one register holds it. Measured: with separate fields, code that keeps pages
/// in a list took 3 ns more for each page.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct Span(u64);

impl Span {
    const LOOSE: u64 = 1 << 63;
    const COUNT_BITS: u32 = 15;
    const COUNT: u64 = (1 << Self::COUNT_BITS) - 1;

    /// The block of this order that begins with `frame`.
    #[inline(always)]
    pub(crate) const fn block(frame: u32, order: Order) -> Self {
        Self::new(frame, order.frames(), StackAt::of(order))
    }

    /// Makes a span of at most 2^30 frames. If the number and the alignment of the frames fit one block, the
    /// frames are one block in the base. The reason is that the base cuts runs into the largest blocks that
    /// fit. There is one exception: the base keeps two pageblocks inside a larger run as two blocks.
    pub(crate) const fn of(frame: u32, count: u32) -> Self {
        if count > Order::MAX.frames() {
            return Self::loose(frame, count);
        }
        let run = Self::new(frame, count, None);
        match run.order() {
            Some(order) => Self::block(frame, order),
            None => run,
        }
    }

    /// Makes a span whose frames may be any number of blocks in the base, or a part of a block that the base
    /// has not split yet.
    pub(crate) const fn loose(frame: u32, count: u32) -> Self {
        let less_one = count as u64 - 1;
        let (low, high) = (less_one & Self::COUNT, less_one >> Self::COUNT_BITS);
        Self(Self::LOOSE | frame as u64 | low << 32 | high << 48)
    }

    #[inline(always)]
    const fn new(frame: u32, count: u32, stack: Option<StackAt>) -> Self {
        Self(frame as u64 | (count as u64) << 32 | (StackAt::to_bits(stack) as u64) << 48)
    }

    /// Encodes the span as one word. The word is not 0, and its bit 47 is 0.
    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    /// Decodes a word of [`to_bits`](Self::to_bits). `None` for 0.
    pub(crate) const fn from_bits(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    #[inline(always)]
    pub(crate) const fn frame(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(crate) const fn count(self) -> u32 {
        let low = (self.0 >> 32 & Self::COUNT) as u32;
        if self.is_loose() {
            (low | ((self.0 >> 48 & Self::COUNT) as u32) << Self::COUNT_BITS) + 1
        } else {
            low
        }
    }

    #[inline(always)]
    const fn is_loose(self) -> bool {
        self.0 & Self::LOOSE != 0
    }

    /// The frames.
    pub(crate) const fn frames(self) -> Range<u32> {
        self.frame()..self.frame() + self.count()
    }

    /// The frames of some pages of this span. `pages` counts from the span's first page.
    ///
    /// # Panics
    /// If the range reaches beyond these frames.
    pub(crate) fn part(self, pages: &Range<usize>) -> Range<u32> {
        let count = self.count();
        assert!(pages.start <= pages.end && pages.end <= count as usize, "{pages:?} of {count} pages");
        self.frame() + pages.start as u32..self.frame() + pages.end as u32
    }

    /// The array for this block. `None` if the span is not a block of a class.
    #[inline(always)]
    pub(crate) const fn stack(self) -> Option<StackAt> {
        // As a signed number, bits 48 to 63 are negative for a loose run, and zero for a span without an
        // array. One comparison rules out loose runs and spans without an array.
        let bits = (self.0 >> 48) as u16;
        if bits.cast_signed() > 0 { StackAt::from_bits(bits) } else { None }
    }

    /// The class of the block. `None` if the span is not a block of a class.
    pub(crate) fn class(self) -> Option<Class> {
        self.stack()?;
        // For a loose run, `class` has already returned, because a loose run has no array. In all other
        // spans, bits 32 to 46 hold the whole count.
        let count = self.0 >> 32 & Self::COUNT;
        Class::of(Order::new(count.trailing_zeros() as u8)?)
    }

    /// The order of the block. `None` if the frames are not one block.
    pub(crate) const fn order(self) -> Option<Order> {
        let count = self.count();
        if !self.is_loose() && count.is_power_of_two() && self.frame().is_multiple_of(count) {
            Order::new(count.trailing_zeros() as u8)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_arrays_and_runs_have_none() {
        for order in 0..=9 {
            let order = Order::new(order).unwrap();
            let block = Span::of(1 << 20, order.frames());
            assert_eq!((block.frame(), block.count()), (1 << 20, order.frames()));
            assert!(block == Span::block(1 << 20, order) && block.stack() == StackAt::of(order));
            assert!(block.stack().is_some() && Span::from_bits(block.to_bits()) == Some(block));
        }
        for (frame, count) in [(0, 3), (1, 2), (4, 8), (8, 16), (0, 1024)] {
            let run = Span::of(frame, count);
            assert_eq!((run.frame(), run.count(), run.stack()), (frame, count, None));
        }
        for count in [1, 512, 1024, 1025, 0x7fff, 0x8000, 0x8001, (1 << 30) - 1, 1 << 30] {
            for frame in [0, 5, (1 << 30) - 1] {
                let run = Span::loose(frame, count);
                assert_eq!((run.frame(), run.count(), run.stack(), run.order()), (frame, count, None, None));
                assert!(run.class().is_none() && run.to_bits() >> 47 & 1 == 0);
                assert!(count <= 1024 || Span::of(frame, count) == run);
            }
        }
        assert!(Span::from_bits(0).is_none());
    }
}
