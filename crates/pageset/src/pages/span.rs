//! Which frames some pages are, in one word.

use pageset_core::Order;

use crate::arrays::{Class, StackAt};

/// A block or a run of frames, and the array that takes it back: the first frame in bits 0 to 31, how many (1024 at most) in 32 to 46,
/// the array in 48 to 63 (0 for what no array takes).
///
/// One word, so that pages travel in two registers. (Measured: as fields of their own they were stored and loaded again
/// by whoever keeps pages in a list, which cost 3 ns a page.)
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct Span(u64);

impl Span {
    /// The block of this order that begins with `frame`.
    #[inline(always)]
    pub(crate) const fn block(frame: u32, order: Order) -> Self {
        Self::new(frame, order.frames(), StackAt::of(order))
    }

    /// Any frames: a block if they are one. Then the base knows them as one, too: what it cuts, it leaves as the largest blocks that fit.
    pub(crate) const fn of(frame: u32, count: u32) -> Self {
        let run = Self::new(frame, count, None);
        match run.order() {
            Some(order) => Self::block(frame, order),
            None => run,
        }
    }

    #[inline(always)]
    const fn new(frame: u32, count: u32, stack: Option<StackAt>) -> Self {
        Self(frame as u64 | (count as u64) << 32 | (StackAt::to_bits(stack) as u64) << 48)
    }

    /// As one word, which is not 0.
    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    /// What [`to_bits`](Self::to_bits) gave; `None` for 0.
    pub(crate) const fn from_bits(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    #[inline(always)]
    pub(crate) const fn frame(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(crate) const fn count(self) -> u32 {
        (self.0 >> 32) as u16 as u32
    }

    /// The array that takes the block; none for other frames.
    #[inline(always)]
    pub(crate) const fn stack(self) -> Option<StackAt> {
        StackAt::from_bits((self.0 >> 48) as u16)
    }

    /// The class of the block; none for other frames.
    pub(crate) fn class(self) -> Option<Class> {
        self.stack()?;
        Class::of(Order::new(self.count().trailing_zeros() as u8)?)
    }

    /// The order of the block; none for frames that are no block.
    pub(crate) const fn order(self) -> Option<Order> {
        let count = self.count();
        if count.is_power_of_two() && self.frame().is_multiple_of(count) {
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
        assert!(Span::from_bits(0).is_none());
    }
}
