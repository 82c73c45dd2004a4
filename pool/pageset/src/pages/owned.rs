//! Pages that share the ownership of their pool.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use pageset_core::Pfn;

use super::{Pages, Span, first_byte};
use crate::pool::Pool;
use crate::sys::PAGE_BYTES;

/// Pages that keep their pool alive. The type is `'static` and [`Send`], so values can be stored and passed
/// between threads like any buffer. Dropping the value, on any thread, frees the pages. Each value has an
/// [`Arc`] of the pool, and the pool is dropped with its last `Arc`.
///
/// ```
/// use std::sync::Arc;
///
/// use bytes::Bytes;
/// use pageset::{Order, Pool};
///
/// let pool = Arc::new(Pool::builder().size(64 << 20).build()?);
/// let mut packet = pool.alloc_owned(Order::ZERO)?;
/// packet[..5].copy_from_slice(b"hello");
/// let packet = Bytes::from_owner(packet); // no copy; the page is free again when the last slice is gone
/// let hello = packet.slice(..5);
/// drop((packet, pool));
/// assert_eq!(&hello[..], b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The type is [`RefUnwindSafe`](std::panic::RefUnwindSafe), because
/// `arrow_buffer::Buffer::from_custom_allocation` accepts only such an owner of a buffer.
///
/// A child of `fork` may read these pages, and dropping them in the child does nothing. See
/// [`Fork`](crate::Fork).
///
/// # Invariants
/// `pages` were given up by a `Pages` value of `pool`, and this value is their only owner. `start` is the
/// address of their first byte.
#[must_use = "pages that are dropped are free again"]
pub struct OwnedPages {
    pages: Span,
    // Each owner counts itself next to the pool. So on another CPU, a look at the pool would wait for the
    // count.
    start: NonNull<u8>,
    pool: Arc<Pool>,
}

// SAFETY: the value is the only owner of its bytes, and `&self` gives no way to change them.
unsafe impl Send for OwnedPages {}
// SAFETY: as for `Send`.
unsafe impl Sync for OwnedPages {}

impl Pages<'_> {
    /// Replaces the borrow of the pool by a clone of the [`Arc`]. Costs one atomic addition.
    ///
    /// # Panics
    /// If these are pages of another pool.
    pub fn into_owned(self, pool: &Arc<Pool>) -> OwnedPages {
        assert!(std::ptr::eq(self.pool, pool.inner()), "{self:?} do not belong to {pool:?}");
        let start = self.as_ptr();
        OwnedPages { pages: self.give_up(), start, pool: Arc::clone(pool) }
    }
}

impl OwnedPages {
    /// Number of pages.
    #[must_use]
    pub const fn page_count(&self) -> usize {
        self.pages.count() as usize
    }

    /// Number of the first frame, counted from the pool's start.
    #[must_use]
    pub const fn pfn(&self) -> Pfn {
        Pfn(self.pages.frame() as u64)
    }

    /// The number of bytes from the pool's start to these pages. In a shared pool, this is the offset in the
    /// pool's file.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.pages.frame() as usize * PAGE_BYTES
    }

    /// Address of the first byte. The address stays the same when this value moves.
    #[must_use]
    #[inline]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Does the same as [`Pages::shrink_to`].
    ///
    /// # Panics
    /// If `keep` is empty or reaches beyond these pages.
    pub fn shrink_to(&mut self, keep: Range<usize>) {
        // INVARIANT: the pages that remain are still ours.
        self.pool.inner().shrink(&mut self.pages, keep);
        self.start = first_byte(self.pool.inner(), self.pages);
    }

    /// Does the same as [`Pages::split_off`]. Each part keeps the pool alive.
    ///
    /// # Panics
    /// If one of the parts would be empty.
    pub fn split_off(&mut self, at: usize) -> Self {
        // INVARIANT: each page is in exactly one of the two values.
        let rest = self.pool.inner().split(&mut self.pages, at);
        Self { pages: rest, start: first_byte(self.pool.inner(), rest), pool: Arc::clone(&self.pool) }
    }

    /// Does the same as [`Pages::join`].
    ///
    /// # Errors
    /// `next`, in the cases of `Pages::join`.
    pub fn join(&mut self, next: Self) -> Result<(), Self> {
        let is_same = Arc::ptr_eq(&self.pool, &next.pool);
        if !is_same || !self.pool.inner().join(&mut self.pages, next.pages) {
            return Err(next);
        }
        // INVARIANT: these pages now have the frames of `next`, which is not dropped.
        drop(next.into_pool());
        Ok(())
    }

    /// Gives up the pages, and returns the reference to their pool.
    fn into_pool(self) -> Arc<Pool> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, and its field `pool` is not used again, so the `Arc` can be moved
        // out of it.
        unsafe { std::ptr::read(&raw const this.pool) }
    }

    /// Does the same as [`Pages::discard`].
    pub fn discard(self) -> usize {
        let pages = self.pages;
        self.into_pool().inner().discard_span(pages)
    }

    /// Does the same as [`Pages::give_back`].
    ///
    /// # Panics
    /// If the range reaches beyond these pages.
    pub fn give_back(&mut self, pages: Range<usize>) -> usize {
        self.pool.inner().give_back(&self.pages.part(&pages))
    }

    /// The pool of these pages.
    #[must_use]
    pub const fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
}

impl Drop for OwnedPages {
    fn drop(&mut self) {
        // SAFETY: by the invariant, a `Pages` value of this pool gave these pages up, and they have no other
        // owner. This value is dropped only once.
        drop(unsafe { Pages::take_back(self.pool.inner(), self.pages) });
    }
}

impl Deref for OwnedPages {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the pool is mapped as long as this value lives. Its bytes are initialised, by the system or
        // by an earlier owner. By the invariant, this value is the only owner of these pages.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.page_count() * PAGE_BYTES) }
    }
}

impl DerefMut for OwnedPages {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.page_count() * PAGE_BYTES) }
    }
}

impl AsRef<[u8]> for OwnedPages {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for OwnedPages {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl fmt::Debug for OwnedPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPages")
            .field("frame", &self.pages.frame())
            .field("count", &self.page_count())
            .finish_non_exhaustive()
    }
}
