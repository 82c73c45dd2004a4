//! The pool of the crate `pageset`, with default settings except for its size.

use pageset::{Builder, Order, Pages, Pool};

use super::{Held, Line, PAGE, Target, bytes};

/// A pool that lives as long as the process.
#[derive(Debug)]
pub(super) struct Pageset {
    pool: &'static Pool,
}

impl Pageset {
    fn of(builder: Builder) -> Result<Self, String> {
        let pool = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { pool: Box::leak(Box::new(pool)) })
    }
}

impl Target for Pageset {
    type Block = Pages<'static>;

    fn open(pages: usize) -> Result<Self, String> {
        Self::of(Pool::builder().size(pages * bytes(0)))
    }

    fn open_pinned(pages: usize) -> Result<Self, String> {
        Self::of(Pool::builder().size(pages * bytes(0)).pinned())
    }

    fn memory(&self) -> Option<*mut [u8]> {
        Some(self.pool.memory().as_ptr())
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Pages<'static>> {
        self.pool.alloc(Order::new(order as u8)?).ok()
    }

    #[inline]
    fn free(&self, _: usize, block: Pages<'static>, _: u32) {
        drop(block);
    }

    #[inline]
    fn alloc_pages(&self, _: usize, pages: usize) -> Option<Pages<'static>> {
        self.pool.alloc_exact(pages).ok()
    }

    #[inline]
    fn free_pages(&self, _: usize, block: Pages<'static>, _: usize) {
        drop(block);
    }
}

impl Held for Pages<'static> {
    #[inline]
    fn start(&self) -> *mut u8 {
        self.as_ptr().as_ptr()
    }

    #[inline]
    fn touch(&mut self, _: u32, line: Line) {
        let pages = self.chunks_exact_mut(PAGE).enumerate();
        pages.for_each(|(page, bytes)| bytes[line.offset(page)] = 1);
    }

    #[inline]
    fn fill(&mut self) {
        <[u8]>::fill(self, 1);
    }
}
