//! Blocks of this CPU's array by number, for callers in other languages: what is inlined of `alloc` and of a free, and nothing else.

use std::num::NonZeroU16;

use pageset_core::Order;

use super::Pool;
use crate::arrays::{Entry, StackAt};

/// An order that the arrays hold: 0 to 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CachedOrder(StackAt);

impl CachedOrder {
    /// This order, if the arrays hold it.
    #[must_use]
    pub const fn of(order: Order) -> Option<Self> {
        match StackAt::of(order) {
            Some(stack) => Some(Self(stack)),
            None => None,
        }
    }

    /// A number for it, below 0x8000, and another one for each order.
    #[must_use]
    #[inline(always)]
    pub const fn bits(self) -> NonZeroU16 {
        self.0.bits()
    }
}

impl Pool {
    /// Takes a block out of this CPU's array by a restartable sequence, and gives the frame that it begins with. `None` if there is
    /// none, without sequences, and in a child of [`fork`](crate::Fork): [`alloc`](Self::alloc) knows what to do then. It never
    /// waits, asks the system, or panics.
    ///
    /// The block is allocated until it is given to [`push_frame`](Self::push_frame) or [`Pages::from_raw`](crate::Pages::from_raw).
    #[must_use = "the block is lost unless it is given back"]
    #[inline(always)]
    pub fn pop_frame(&self, order: CachedOrder) -> Option<u32> {
        self.inner.percpu.pop_in_sequence(order.0).map(Entry::frame)
    }

    /// Frees a block into this CPU's array by a restartable sequence. `false`, and nothing has happened, if there is no room, without
    /// sequences, and in a child of [`fork`](crate::Fork): the end of [`Pages`](crate::Pages) knows what to do then. It never
    /// waits, asks the system, or panics.
    ///
    /// # Safety
    /// As for [`Pages::from_raw`](crate::Pages::from_raw): a block of this order that begins with this frame is allocated, and
    /// has no owner.
    #[must_use]
    #[inline(always)]
    #[expect(unsafe_code, reason = "the caller answers for the block")]
    pub unsafe fn push_frame(&self, frame: u32, order: CachedOrder) -> bool {
        self.inner.percpu.push_at(order.0, frame)
    }
}
