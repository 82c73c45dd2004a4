//! Allocates many pages at once, or a block at a given place.

use pageset_core::{Order, Pfn};

use super::{Inner, Pool};
use crate::Pages;
use crate::arrays::{Batch, Class};
use crate::base::BaseError;
use crate::error::AllocError;

impl Pool {
    /// Allocates `count` single pages and appends them to `pages`. Returns the number of allocated pages. The
    /// result is smaller than `count` if memory or capacity is short, or if the heap has no memory for the
    /// list. Before the call returns fewer pages than `count`, the call asks the function of
    /// [`Builder::on_shortage`](crate::Builder::on_shortage) for the missing bytes, until the function
    /// returns `false`. O(count).
    ///
    /// # Errors
    /// The errors of [`alloc`](Self::alloc), and [`AllocError::HeapExhausted`], but only if no page could be
    /// allocated.
    pub fn alloc_bulk<'p>(&'p self, count: usize, pages: &mut Vec<Pages<'p>>) -> Result<usize, AllocError> {
        let inner = self.in_parent()?;
        let mut got = 0;
        while got < count {
            let missing = count - got;
            // Ask the heap only for as many entries as the pool can fill.
            let part = match missing.min(inner.left_frames()) {
                0 => self.alloc_first_of(missing).and_then(|page| {
                    reserve(pages, 1)?;
                    pages.push(page);
                    Ok(1)
                }),
                wanted => reserve(pages, wanted).and_then(|()| self.alloc_reserved(wanted, missing, pages)),
            };
            match part {
                Ok(some) => got += some,
                Err(error) if got == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(got)
    }

    /// Allocates up to `count` pages, at least one, into a list that has room for them. `missing` is the
    /// number of pages that the caller still wants.
    fn alloc_reserved<'p>(
        &'p self,
        count: usize,
        missing: usize,
        pages: &mut Vec<Pages<'p>>,
    ) -> Result<usize, AllocError> {
        let inner = self.inner();
        let mut got = 0;
        while got < count
            && let Some(entry) = inner.percpu.pop(Order::ZERO)
        {
            pages.push(Pages::of_block(inner, entry.frame(), Order::ZERO));
            got += 1;
        }
        // `None` in a signal handler that interrupted its thread inside an operation of the pool. In an
        // interrupting handler, the last allocation of this function returns the error.
        let inside = inner.enter().ok();
        while inside.is_some() && got < count {
            let batch: &mut Batch = &mut Batch::new();
            inner.fetch(Class::Order0, count - got, batch);
            let singles = batch.as_slice().iter().rev();
            inner.counts.note_slow_alloc(batch.len() as u32);
            batch.as_slice().iter().for_each(|entry| inner.percpu.note_block(*entry, 1));
            pages.extend(singles.map(|entry| Pages::of_block(inner, entry.frame(), Order::ZERO)));
            got += batch.len();
            if batch.len() == 0 {
                break;
            }
        }
        drop(inside);
        if got == 0 {
            // The base has no free page. A single allocation also empties the caches, and asks the program to
            // free pages.
            pages.push(self.alloc_first_of(missing)?);
            got = 1;
        }
        Ok(got)
    }

    /// Allocates a page when this CPU's array is empty. If the pool has no free page, asks the program to
    /// free `count` pages.
    #[doc(hidden)]
    pub fn alloc_first_of(&self, count: usize) -> Result<Pages<'_>, AllocError> {
        let inner = self.inner();
        let block = inner.or_reclaimed(count, || inner.try_past_array(Order::ZERO))?;
        Ok(Pages::of_block(inner, block.frame(), Order::ZERO))
    }

    /// Allocates the block of `order` that begins `frame` pages after the pool's start, if all its pages are
    /// free. If some pages are not free, empties all caches and tries again.
    ///
    /// # Errors
    /// Returns [`AllocError::BadFrame`], [`AllocError::NotFree`], [`AllocError::OverCapacity`],
    /// [`AllocError::Forked`] or [`AllocError::WouldBlock`].
    pub fn alloc_at(&self, frame: usize, order: Order) -> Result<Pages<'_>, AllocError> {
        let (inner, _inside) = self.enter()?;
        let (pfn, frames) = (Pfn(frame as u64), u64::from(order.frames()));
        if !pfn.is_aligned(order) || pfn.0.saturating_add(frames) > u64::from(inner.frames) {
            return Err(AllocError::BadFrame);
        }
        let frame = pfn.0 as u32;
        let outcome = inner.alloc_at(frame, order).or_else(|_| {
            inner.drain_arrays();
            // Another thread may have taken blocks out of the base for a moment, to discard or clear the
            // blocks. Wait until the blocks are back in the base.
            let _all_there = inner.returning.lock();
            inner.alloc_at(frame, order)
        });
        outcome?;
        inner.counts.note_slow_alloc(order.frames());
        inner.percpu.note_handed_out(frame, order.frames());
        inner.ledger.hand_out(frame..frame + order.frames());
        Ok(Pages::of_block(inner, frame, order))
    }
}

/// Makes room for more pages in a list.
fn reserve(pages: &mut Vec<Pages<'_>>, more: usize) -> Result<(), AllocError> {
    pages.try_reserve(more).map_err(|_| AllocError::HeapExhausted)
}

impl Inner {
    /// The number of single pages that users could still get. Other threads may change the number of pages
    /// that users could get at any time.
    fn left_frames(&self) -> usize {
        let free = self.capacity.limit().saturating_sub(self.capacity.out()) + self.percpu.frames();
        usize::try_from(free.min(u64::from(self.frames))).unwrap_or(usize::MAX)
    }

    /// Takes a block at a given place from the base, and charges it to the capacity.
    pub(super) fn alloc_at(&self, frame: u32, order: Order) -> Result<(), AllocError> {
        if !self.capacity.try_charge(u64::from(order.frames())) {
            return Err(AllocError::OverCapacity);
        }
        self.base.alloc_at(frame, order).map_err(|error| {
            self.capacity.uncharge(u64::from(order.frames()));
            match error {
                BaseError::Foreign(_) | BaseError::Misaligned(..) => AllocError::BadFrame,
                _ => AllocError::NotFree,
            }
        })
    }
}
