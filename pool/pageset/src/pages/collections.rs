//! Lets collections keep their elements in blocks of a pool.

use std::alloc::Layout;
use std::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};
use pageset_core::Order;

use super::Pages;
use super::span::Span;
use crate::pool::Pool;
use crate::sys::{PAGE_BYTES, PAGE_SHIFT};

/// A pool as the allocator of collections. Each allocation is a block of at least 4 KiB, or a run if its size
/// or its alignment is larger than 4 MiB.
///
/// ```
/// use allocator_api2::vec::Vec;
/// use pageset::{PageCollections, Pool};
///
/// let pool = Pool::builder().size(64 << 20).build()?;
/// let mut numbers = Vec::with_capacity_in(100_000, PageCollections::new(&pool));
/// numbers.extend(0..100_000_u32);
/// assert_eq!(numbers.as_ptr().addr() % 4096, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PageCollections<'p> {
    pool: &'p Pool,
}

impl<'p> PageCollections<'p> {
    /// Makes an allocator that takes its blocks from `pool`.
    #[must_use]
    pub fn new(pool: &'p Pool) -> Self {
        Self { pool }
    }

    /// The order of the block that a layout needs. A block is aligned to its size, so a large alignment needs
    /// a larger block.
    fn order(layout: Layout) -> Option<Order> {
        Order::for_bytes(layout.size().max(layout.align()).max(1))
    }

    /// The bytes of a run for a layout that no block serves. The layout may have a small size and a large
    /// alignment.
    fn run_bytes(layout: Layout) -> usize {
        layout.size().max(1)
    }

    fn leave(pages: Pages<'p>) -> NonNull<[u8]> {
        let start = pages.as_ptr();
        let span = pages.give_up();
        NonNull::slice_from_raw_parts(start, span.count() as usize * PAGE_BYTES)
    }
}

// SAFETY: a block stays at its address until it is deallocated, also when the allocator is moved or copied.
// Copies refer to the same pool, so one copy may free a block that another copy allocated.
unsafe impl Allocator for PageCollections<'_> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let pages = match Self::order(layout) {
            Some(order) => self.pool.alloc(order),
            None => self.pool.alloc_run_aligned(Self::run_bytes(layout), layout.align()),
        };
        pages.map(Self::leave).map_err(|_| AllocError)
    }

    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let pages = match Self::order(layout) {
            Some(order) => self.pool.alloc_zeroed(order),
            None => self.pool.alloc_run_aligned_zeroed(Self::run_bytes(layout), layout.align()),
        };
        pages.map(Self::leave).map_err(|_| AllocError)
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        let first = ((start.addr().get() - self.pool.start().addr()) >> PAGE_SHIFT) as u32;
        let pages = match Self::order(layout) {
            Some(order) => Span::block(first, order),
            None => Span::of(first, Self::run_bytes(layout).div_ceil(PAGE_BYTES) as u32),
        };
        // SAFETY: the caller promises that this allocator allocated the block with a layout that fits, and
        // that nothing uses the block any more.
        drop(unsafe { Pages::take_back(self.pool.inner(), pages) });
    }
}
