//! An allocation: from this CPU's array, after a refill, or directly from the base.

use std::sync::Arc;

use pageset_core::Order;

use super::{Inner, Pool};
use crate::arrays::{Class, Entry, ZeroState};
use crate::error::AllocError;
use crate::{OwnedPages, Pages};

impl Pool {
    /// Allocates a block of `2^order` pages, aligned to its size. The contents of the block are unspecified.
    ///
    /// O(1) if this CPU's array has a block. Otherwise the thread takes the base's lock and moves up to half
    /// an array of blocks.
    ///
    /// A signal handler may call `alloc`, and may drop pages. If the handler interrupted its thread inside an
    /// operation of this pool, the call may return [`AllocError::WouldBlock`], and dropped pages are freed a
    /// little later.
    ///
    /// # Errors
    /// Returns [`AllocError::OutOfMemory`], [`AllocError::OverCapacity`], [`AllocError::Forked`] or
    /// [`AllocError::WouldBlock`].
    #[inline]
    pub fn alloc(&self, order: Order) -> Result<Pages<'_>, AllocError> {
        let inner = &*self.inner;
        match inner.percpu.pop(order) {
            Some(block) => Ok(Pages::of_block(inner, block.frame(), order)),
            // Each branch builds its own `Pages`, so that the fast branch does not depend on the slow one.
            None => Self::pages_past_array(inner, order),
        }
    }

    #[cold]
    fn pages_past_array(inner: &Inner, order: Order) -> Result<Pages<'_>, AllocError> {
        let block = inner.alloc_past_array(order)?;
        Ok(Pages::of_block(inner, block.frame(), order))
    }

    /// Does the same as [`alloc`](Self::alloc), and makes all bytes zero. Memory that is known to be zero is
    /// not cleared again. Memory is known to be zero if the memory is fresh from the system, went back to the
    /// system before, or was cleared by a scan. After clearing, the block's beginning is in the CPU's cache.
    ///
    /// # Errors
    /// The errors of `alloc`.
    #[inline]
    pub fn alloc_zeroed(&self, order: Order) -> Result<Pages<'_>, AllocError> {
        let block = self.inner.percpu.pop(order).map_or_else(|| self.inner.alloc_past_array(order), Ok)?;
        let mut pages = Pages::of_block(&self.inner, block.frame(), order);
        if block.zero() == ZeroState::Unknown {
            self.inner.counts.note_cleared(order.frames());
            pages.clear();
        }
        Ok(pages)
    }

    /// Does the same as [`alloc`](Self::alloc), and returns pages that keep the pool alive. Use `alloc_owned`
    /// for buffers that outlive the code that made them. [`Pages::into_owned`] does the same for other
    /// allocations.
    ///
    /// # Errors
    /// The errors of `alloc`.
    pub fn alloc_owned(self: &Arc<Self>, order: Order) -> Result<OwnedPages, AllocError> {
        Ok(self.alloc(order)?.into_owned(self))
    }

    /// Does the same as [`alloc_zeroed`](Self::alloc_zeroed), and returns pages that keep the pool alive.
    ///
    /// # Errors
    /// The errors of `alloc`.
    pub fn alloc_owned_zeroed(self: &Arc<Self>, order: Order) -> Result<OwnedPages, AllocError> {
        Ok(self.alloc_zeroed(order)?.into_owned(self))
    }
}

impl Inner {
    /// Allocates a block when this CPU's array is empty, and refills the array if there is one.
    #[cold]
    #[inline(never)]
    fn alloc_past_array(&self, order: Order) -> Result<Entry, AllocError> {
        self.or_reclaimed(order.frames() as usize, || self.try_past_array(order))
    }

    pub(super) fn try_past_array(&self, order: Order) -> Result<Entry, AllocError> {
        let _inside = self.enter()?;
        self.percpu.fit(self.capacity.left());
        let block = match Class::of(order).and_then(|class| self.refill(class)) {
            Some(block) => block,
            None => self.alloc_direct(order)?,
        };
        self.counts.note_slow_alloc(order.frames());
        self.percpu.note_block(block, order.frames());
        Ok(block)
    }

    /// Allocates one block directly from the base. If the base has no block of this order or the capacity is
    /// used up, drains the arrays and tries again.
    pub(super) fn alloc_direct(&self, order: Order) -> Result<Entry, AllocError> {
        self.alloc_from_base(order, order.frames(), |cpu| self.base.alloc(cpu, order))
    }

    fn alloc_from_base(
        &self,
        order: Order,
        frames: u32,
        alloc: impl Fn(usize) -> Option<u32>,
    ) -> Result<Entry, AllocError> {
        self.alloc_charged(order, frames, &alloc).or_else(|_| {
            self.drain_arrays();
            // Another thread may have taken blocks out of the base for a moment, to discard or clear the
            // blocks. Wait until the blocks are back in the base.
            let _all_there = self.returning.lock();
            self.alloc_charged(order, frames, &alloc)
                .inspect_err(|_| self.percpu.note_shortage(self.capacity.left()))
        })
    }

    /// The error for an allocation that the capacity has no room for.
    pub(super) fn shortage(&self, order: Order) -> AllocError {
        let has_limit = self.capacity.limit() < u64::from(self.frames);
        if has_limit { AllocError::OverCapacity } else { AllocError::OutOfMemory { order } }
    }

    fn alloc_charged(
        &self,
        order: Order,
        frames: u32,
        alloc: impl Fn(usize) -> Option<u32>,
    ) -> Result<Entry, AllocError> {
        if !self.capacity.try_charge(u64::from(frames)) {
            return Err(self.shortage(order));
        }
        let Some(first) = alloc(self.percpu.cpu()) else {
            self.capacity.uncharge(u64::from(frames));
            return Err(AllocError::OutOfMemory { order });
        };
        Ok(Entry::with_zero(first, self.ledger.hand_out(first..first + frames)))
    }
}
