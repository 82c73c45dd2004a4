//! Pages that own their pool too: what borrows in Rust is shared in Python.

use std::sync::Arc;

use pageset::{AllocError, Order, PAGE_BYTES, Pages, Pool, RawPages};

/// Pages, free again when dropped, whose pool lives at least as long.
///
/// # Invariants
/// `pages` were given up by pages of `pool`, and this value is their only owner.
pub(crate) struct Owned {
    pool: Arc<Pool>,
    pages: RawPages,
}

impl Owned {
    /// A block.
    pub(crate) fn block(pool: &Arc<Pool>, order: Order) -> Result<Self, AllocError> {
        pool.alloc(order).map(|pages| Self::of(pool, pages))
    }

    /// A block that is all zeroes.
    pub(crate) fn zeroed(pool: &Arc<Pool>, order: Order) -> Result<Self, AllocError> {
        pool.alloc_zeroed(order).map(|pages| Self::of(pool, pages))
    }

    /// So many pages that lie side by side.
    pub(crate) fn exact(pool: &Arc<Pool>, count: usize) -> Result<Self, AllocError> {
        pool.alloc_exact(count).map(|pages| Self::of(pool, pages))
    }

    /// So many single pages; fewer if there are no more.
    pub(crate) fn many(pool: &Arc<Pool>, count: usize) -> Result<Vec<Self>, AllocError> {
        let mut pages = Vec::new();
        pool.alloc_bulk(count, &mut pages)?;
        Ok(pages.into_iter().map(|pages| Self::of(pool, pages)).collect())
    }

    /// `pages` must be of `pool`.
    fn of(pool: &Arc<Pool>, pages: Pages<'_>) -> Self {
        // INVARIANT: each caller has just got the pages from this pool, and gives them up here.
        Self { pool: Arc::clone(pool), pages: pages.into_raw() }
    }

    /// How many pages these are.
    pub(crate) const fn page_count(&self) -> usize {
        self.pages.page_count()
    }

    /// Bytes from the pool's start.
    pub(crate) const fn offset(&self) -> usize {
        self.pages.frame() * PAGE_BYTES
    }

    /// Where they begin.
    pub(crate) fn start(&self) -> *mut u8 {
        self.pool.start().cast_mut().wrapping_add(self.offset())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: by the invariant these were given up by pages of this pool and have no other owner; a value is dropped once.
        drop(unsafe { Pages::from_raw(&self.pool, self.pages) });
    }
}
