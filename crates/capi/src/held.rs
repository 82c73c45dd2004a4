//! How many pages begin at a frame, in 16 bits.

use pageset::{CachedOrder, Order};

/// What C has that begins at a frame: nothing (0), a block of an order that arrays hold (its bits), or a number of pages (above
/// 0x8000). So the fast path compares without computing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held(pub(crate) u16);

impl Held {
    pub(crate) const NOTHING: Self = Self(0);
    const COUNT: u16 = 0x8000;

    #[inline(always)]
    pub(crate) const fn block(order: CachedOrder) -> Self {
        Self(order.bits().get())
    }

    /// Any pages, 1024 at most: a block if they are one.
    pub(crate) fn pages(frame: usize, page_count: usize) -> Self {
        let block = page_count.is_power_of_two() && frame.is_multiple_of(page_count);
        let order = Order::holding(page_count as u64).filter(|_| block);
        order.and_then(CachedOrder::of).map_or(Self(Self::COUNT | page_count as u16), Self::block)
    }

    pub(crate) fn page_count(self) -> usize {
        let mut orders = (0..).map_while(Order::new);
        let is_this = |order: &Order| CachedOrder::of(*order).map(Self::block) == Some(self);
        match orders.find(is_this) {
            Some(order) => order.frames() as usize,
            None => usize::from(self.0 & !Self::COUNT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_at_every_place_is_told_apart() {
        for frame in [0, 1, 2, 512, 1024] {
            let all: Vec<_> = (1..=1024).map(|count| Held::pages(frame, count)).collect();
            for (index, held) in all.iter().enumerate() {
                assert_eq!(held.page_count(), index + 1);
                assert!(*held != Held::NOTHING && !all[..index].contains(held));
            }
        }
    }
}
