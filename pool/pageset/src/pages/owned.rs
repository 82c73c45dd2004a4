//! Pages that share the ownership of their pool.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use pageset_core::Pfn;

use super::{Pages, Span, first_byte};
use crate::pool::Pool;
use crate::sys::PAGE_BYTES;

/// A counted reference to a pool: [`Arc`], or [`Rc`] in a program with one thread.
pub trait PoolRef: Clone + Deref<Target = Pool> + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for std::sync::Arc<super::Pool> {}
    impl Sealed for std::rc::Rc<super::Pool> {}
}

impl PoolRef for Arc<Pool> {}
impl PoolRef for Rc<Pool> {}

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
/// With an [`Rc`], the pages stay on one thread, and the count needs no atomic addition:
///
/// ```
/// use std::rc::Rc;
///
/// use pageset::{Order, OwnedPages, Pool};
///
/// let pool = Rc::new(Pool::builder().size(64 << 20).build()?);
/// let page: OwnedPages<Rc<Pool>> = pool.alloc(Order::ZERO)?.into_owned(&pool);
/// drop(pool);
/// assert_eq!(page.page_count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0277
/// fn send<T: Send>() {}
/// send::<pageset::OwnedPages<std::rc::Rc<pageset::Pool>>>();
/// ```
///
/// The type is [`RefUnwindSafe`](std::panic::RefUnwindSafe), because
/// `arrow_buffer::Buffer::from_custom_allocation` requires `RefUnwindSafe` of a buffer's owner.
///
/// A child of `fork` may read these pages, and dropping them in the child does nothing. See
/// [`Fork`](crate::Fork).
///
/// # Invariants
/// A `Pages` value of `pool` gave `pages` up, and the `OwnedPages` value is the only owner of `pages`.
/// `start` is the address of the first byte of `pages`.
#[must_use = "pages that are dropped are free again"]
pub struct OwnedPages<P: PoolRef = Arc<Pool>> {
    pages: Span,
    // The count of owners lies next to the pool. Owners on other CPUs change the count. So a read of the
    // pool's start from the pool would wait for the count's cache line.
    start: NonNull<u8>,
    pool: P,
}

// SAFETY: the value is the only owner of its bytes, and `&self` gives no way to change them.
unsafe impl<P: PoolRef + Send> Send for OwnedPages<P> {}
// SAFETY: as for `Send`.
unsafe impl<P: PoolRef + Sync> Sync for OwnedPages<P> {}

impl Pages<'_> {
    /// Replaces the borrow of the pool by a clone of the [`Arc`] or [`Rc`]. A clone of an `Arc` costs one
    /// atomic addition.
    ///
    /// # Panics
    /// If these are pages of another pool.
    pub fn into_owned<P: PoolRef>(self, pool: &P) -> OwnedPages<P> {
        assert!(std::ptr::eq(self.pool, pool.inner()), "{self:?} do not belong to {:?}", **pool);
        let start = self.as_ptr();
        OwnedPages { pages: self.give_up(), start, pool: pool.clone() }
    }
}

impl<P: PoolRef> OwnedPages<P> {
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

    /// The number of bytes from the pool's start to these pages. In a shared pool, the result is also the
    /// offset of these pages in the pool's file.
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
        // INVARIANT: this value still owns the pages that remain.
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
        Self { pages: rest, start: first_byte(self.pool.inner(), rest), pool: self.pool.clone() }
    }

    /// Does the same as [`Pages::join`].
    ///
    /// # Errors
    /// Returns `next` if [`Pages::join`] would return it.
    pub fn join(&mut self, next: Self) -> Result<(), Self> {
        let is_same = std::ptr::eq(&raw const *self.pool, &raw const *next.pool);
        if !is_same || !self.pool.inner().join(&mut self.pages, next.pages) {
            return Err(next);
        }
        // INVARIANT: these pages now have the frames of `next`, which is not dropped.
        drop(next.into_pool());
        Ok(())
    }

    /// Gives up the pages, and returns the reference to their pool.
    fn into_pool(self) -> P {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, and its field `pool` is not used again, so the reference can be
        // moved out of it.
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
    pub const fn pool(&self) -> &P {
        &self.pool
    }
}

impl<P: PoolRef> Drop for OwnedPages<P> {
    fn drop(&mut self) {
        // SAFETY: by the invariant, a `Pages` value of this pool gave these pages up, and they have no other
        // owner. Rust drops the `OwnedPages` value only once.
        drop(unsafe { Pages::take_back(self.pool.inner(), self.pages) });
    }
}

impl<P: PoolRef> Deref for OwnedPages<P> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the pool is mapped as long as this value lives. The pool's bytes are initialised, by the
        // system or by an earlier owner of the pages. By the invariant, this value is the only owner of these
        // pages.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.page_count() * PAGE_BYTES) }
    }
}

impl<P: PoolRef> DerefMut for OwnedPages<P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.page_count() * PAGE_BYTES) }
    }
}

impl<P: PoolRef> AsRef<[u8]> for OwnedPages<P> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<P: PoolRef> AsMut<[u8]> for OwnedPages<P> {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl<P: PoolRef> fmt::Debug for OwnedPages<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPages")
            .field("frame", &self.pages.frame())
            .field("count", &self.page_count())
            .finish_non_exhaustive()
    }
}
