//! Which pageblocks of the base may have free parts, so that nobody searches all of them when memory is short.

use std::ops::Range;
use std::sync::atomic::{
    AtomicU16, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    fence,
};

use pageset_core::{Order, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

use crate::heap::{self, HeapExhausted};

/// A bit for each order below that of a pageblock.
const ALL: u16 = (1 << PAGEBLOCK_ORDER) - 1;

/// By pageblock the orders of which it may have a free block. A bit is clear only if a search found none and nothing was freed
/// there since.
pub(crate) struct Scattered {
    orders: Box<[AtomicU16]>,
    /// Where the last search found something.
    near: AtomicUsize,
}

impl Scattered {
    /// For so many pageblocks, none of which is split.
    pub(crate) fn new(pageblocks: usize) -> Result<Self, HeapExhausted> {
        Ok(Self { orders: heap::zeroed(pageblocks)?, near: AtomicUsize::new(0) })
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.orders)
    }

    /// Notes that a block was taken out of a pageblock, which may have been whole before.
    pub(crate) fn note_taken(&self, frame: u32) {
        let orders = &self.orders[(frame >> PAGEBLOCK_ORDER) as usize];
        if orders.load(Relaxed) != ALL {
            orders.store(ALL, Relaxed);
        }
    }

    /// Notes that frames were freed.
    pub(crate) fn note_freed(&self, frames: Range<u32>) {
        // Whoever searched and did not see them free has cleared the bits before.
        fence(SeqCst);
        let blocks = frames.start >> PAGEBLOCK_ORDER..frames.end.div_ceil(PAGEBLOCK_FRAMES);
        blocks.for_each(|block| self.orders[block as usize].store(ALL, Relaxed));
    }

    pub(crate) fn pageblocks(&self) -> Range<u32> {
        0..self.orders.len() as u32
    }

    /// The first block of `order` that `take` finds in a pageblock. O(pageblocks).
    pub(crate) fn find(&self, order: Order, take: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let take_in = |block: usize| {
            let orders = &self.orders[block];
            if orders.load(Relaxed) >> order.get() & 1 == 0 {
                return None;
            }
            // What has none of an order has no larger one.
            let before = orders.fetch_and((1 << order.get()) - 1, Relaxed);
            fence(SeqCst);
            let found = take(block as u32)?;
            orders.fetch_or(before, Relaxed);
            self.near.store(block, Relaxed);
            Some(found)
        };
        let near = self.near.load(Relaxed);
        (near..self.orders.len()).chain(0..near).find_map(take_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_none_is_asked_again_when_something_was_freed() {
        let scattered = Scattered::new(4).unwrap();
        let order = |order| Order::new(order).unwrap();
        let asked = |of: u8| {
            let asked = std::cell::RefCell::new(Vec::new());
            let found = scattered.find(order(of), |block| {
                asked.borrow_mut().push(block);
                None
            });
            assert_eq!(found, None);
            asked.into_inner()
        };
        assert_eq!(asked(0), [0; 0], "nothing was split");
        scattered.note_taken(513);
        scattered.note_freed(1535..1537);
        assert_eq!(asked(3), [1, 2, 3]);
        assert_eq!((asked(3), asked(5)), (vec![], vec![]));
        scattered.note_freed(1024..1025);
        assert_eq!(asked(5), [2]);
        assert_eq!(asked(2), [1, 2, 3], "smaller ones may be there");
        scattered.note_freed(0..2048);
        assert_eq!(scattered.find(order(2), |block| (block == 2).then_some(1028)), Some(1028));
        assert_eq!(asked(2), [2, 3], "from there on; the others had none");
    }
}
