//! The fast path alone, for bindings to other languages: calls that only use this CPU's array. The calls
//! identify a block by its first frame.

use std::num::NonZeroU16;

use pageset_core::Order;

use super::Pool;
use crate::arrays::{Entry, StackAt};

/// An order that the arrays hold: 0 to 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CachedOrder(StackAt);

impl CachedOrder {
    /// Makes the value for an order. `None` if no array holds blocks of this order.
    #[must_use]
    pub const fn of(order: Order) -> Option<Self> {
        match StackAt::of(order) {
            Some(stack) => Some(Self(stack)),
            None => None,
        }
    }

    /// A number that identifies the order. No two orders have the same number. All numbers are below 0x8000.
    #[must_use]
    #[inline(always)]
    pub const fn bits(self) -> NonZeroU16 {
        self.0.bits()
    }
}

impl Pool {
    /// Takes a block from this CPU's array by a restartable sequence, and returns the block's first frame.
    /// `None` if this CPU's array is empty or missing, if locks protect the arrays, or in a child of
    /// [`fork`](crate::Fork). If the result is `None`, call [`alloc`](Self::alloc). This function never
    /// waits, never makes a system call, and never panics.
    ///
    /// The block is allocated until it is passed to [`push_frame`](Self::push_frame) or
    /// [`Pages::from_raw`](crate::Pages::from_raw).
    #[must_use = "the block is lost unless it is given back"]
    #[inline(always)]
    pub fn pop_frame(&self, order: CachedOrder) -> Option<u32> {
        self.inner.percpu.pop_in_sequence(order.0).map(Entry::frame)
    }

    /// Frees a block into this CPU's array by a restartable sequence. Changes nothing and returns `false` if
    /// this CPU's array is full or missing, if locks protect the arrays, or in a child of
    /// [`fork`](crate::Fork). If the result is `false`, make [`Pages`](crate::Pages) of the block and drop
    /// these pages. This function never waits, never makes a system call, and never panics.
    ///
    /// # Safety
    /// The caller promises the same as for [`Pages::from_raw`](crate::Pages::from_raw): a block of this order
    /// that begins with this frame is allocated, and has no owner.
    #[must_use]
    #[inline(always)]
    #[expect(unsafe_code, reason = "the caller answers for the block")]
    pub unsafe fn push_frame(&self, frame: u32, order: CachedOrder) -> bool {
        self.inner.percpu.push_at(order.0, frame)
    }
}
