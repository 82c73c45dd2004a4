//! The pool of the crate `pageset`, with default settings except for its size.

use pageset::{Order, Pages, Pool};

use super::{Held, Line, PAGE, Target, bytes};

/// A pool that lives as long as the process.
#[derive(Debug)]
pub(super) struct Pageset {
    pool: &'static Pool,
}

impl Target for Pageset {
    type Block = Pages<'static>;

    fn open(pages: usize) -> Result<Self, String> {
        let pool = Pool::builder().size(pages * bytes(0)).build().map_err(|error| error.to_string())?;
        Ok(Self { pool: Box::leak(Box::new(pool)) })
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
    fn address(&self) -> usize {
        self.as_ptr().addr().get()
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
