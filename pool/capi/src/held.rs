//! Marks of 16 bits that say how many pages of C begin at a frame.

use pageset::{CachedOrder, Order};

/// The mark of a frame. The mark is 0 if no pages of C begin at the frame. For a block of an order that
/// arrays have, the mark is the order's bits, so that the fast path only compares. A mark above 0x8000 has a
/// number of pages up to 1024, or a third of the bits of a larger number. The marks of the next two frames
/// have the other two thirds of these bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held(pub(crate) u16);

/// The marks at a frame and at the two frames behind it.
pub(crate) type Marks = [Held; 3];

impl Held {
    pub(crate) const NOTHING: Self = Self(0);
    const COUNT: u16 = 0x8000;
    /// The high bits of the three marks of a large number. The high bits of the three marks differ, so that
    /// no pages seem to begin at the second or third mark.
    const THIRDS: [u16; 3] = [0x9000, 0xa000, 0xb000];
    const THIRD: u16 = 0x0fff;

    #[inline(always)]
    pub(crate) const fn block(order: CachedOrder) -> Self {
        Self(order.bits().get())
    }

    /// The marks for at most 2^30 pages. If the number and the alignment of the pages fit a block, the first
    /// mark is a block's mark. Marks that are `NOTHING` need not be written.
    pub(crate) fn pages(frame: usize, page_count: usize) -> Marks {
        if page_count > Order::MAX.frames() as usize {
            let third = |at: usize| (page_count - 1) >> (12 * at) & usize::from(Self::THIRD);
            return std::array::from_fn(|at| Self(Self::THIRDS[at] | third(at) as u16));
        }
        let block = page_count.is_power_of_two() && frame.is_multiple_of(page_count);
        let order = Order::holding(page_count as u64).filter(|_| block);
        let first =
            order.and_then(CachedOrder::of).map_or(Self(Self::COUNT | page_count as u16), Self::block);
        [first, Self::NOTHING, Self::NOTHING]
    }

    /// The number of pages that begin at the frame of the first mark. `None` if no pages begin at this frame.
    pub(crate) fn page_count(marks: Marks) -> Option<usize> {
        let [first, ..] = marks;
        let mut orders = (0..).map_while(Order::new);
        let is_this = |order: &Order| CachedOrder::of(*order).map(Self::block) == Some(first);
        match first.0 & !Self::THIRD {
            _ if first == Self::NOTHING => None,
            tag if tag == Self::THIRDS[0] => {
                let thirds = marks.iter().rev().map(|mark| usize::from(mark.0 & Self::THIRD));
                Some(thirds.fold(0, |count, third| count << 12 | third) + 1)
            }
            tag if Self::THIRDS.contains(&tag) => None,
            _ => Some(match orders.find(is_this) {
                Some(order) => order.frames() as usize,
                None => usize::from(first.0 & !Self::COUNT),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_at_every_place_is_told_apart() {
        for frame in [0, 1, 2, 512, 1024] {
            let all: Vec<_> = (1..=1026).map(|count| Held::pages(frame, count)).collect();
            for (index, held) in all.iter().enumerate() {
                assert_eq!(Held::page_count(*held), Some(index + 1));
                assert!(held[0] != Held::NOTHING && !all[..index].contains(held));
            }
        }
        for count in [1025, 4095, 4096, 4097, 1 << 24, (1 << 24) + 1, (1 << 30) - 1, 1 << 30] {
            let [first, second, third] = Held::pages(0, count);
            assert_eq!(Held::page_count([first, second, third]), Some(count));
            assert_eq!(Held::page_count([second, third, Held::NOTHING]), None, "nothing begins there");
            assert_eq!(Held::page_count([third, Held::NOTHING, Held::NOTHING]), None, "nothing begins there");
        }
        assert_eq!(Held::page_count([Held::NOTHING; 3]), None);
    }
}
