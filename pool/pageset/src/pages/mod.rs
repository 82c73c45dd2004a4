//! Pages of a pool. Each page has one owner.

mod buffer;
#[cfg(feature = "allocator-api2")]
mod collections;
mod owned;
mod span;

pub use buffer::PageBuffer;
#[cfg(feature = "allocator-api2")]
pub use collections::PageCollections;
pub use owned::{OwnedPages, PoolRef};
pub(crate) use span::Span;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use pageset_core::{Order, Pfn};

use crate::pool::{Inner, Pool, PoolId};
use crate::sys::{PAGE_BYTES, PAGE_SHIFT};

/// A block, or a run of contiguous pages. Derefs to its bytes. Dropping the value, on any thread, frees the
/// pages.
///
/// # Invariants
/// The frames are allocated, and this value is their only owner.
#[must_use = "pages that are dropped are free again"]
pub struct Pages<'p> {
    pool: &'p Inner,
    span: Span,
}

/// Pages that no Rust value owns. [`Pages::into_raw`] returns such pages, so that a C interface can hand them
/// out.
///
/// The value from `into_raw` knows its pool, and other pools refuse the value. Two values are equal if their
/// frame numbers and page counts are equal, even if their pools differ.
#[derive(Clone, Copy)]
pub struct RawPages {
    span: Span,
    /// The pool. `None` if [`new`](Self::new) made this value.
    pool: Option<PoolId>,
}

impl RawPages {
    /// Names `page_count` pages (1 to 2^30) that begin `frame` pages after a pool's start. Any pool may take
    /// the result back. Returns `None` if the numbers are out of range. `RawPages::new` is for bindings to
    /// other languages, which keep a page's address instead of a `RawPages`. The function does not check
    /// whether the named pages exist.
    #[must_use]
    pub const fn new(frame: usize, page_count: usize) -> Option<Self> {
        if frame <= u32::MAX as usize && 0 < page_count && page_count <= 1 << 30 {
            Some(Self { span: Span::of(frame as u32, page_count as u32), pool: None })
        } else {
            None
        }
    }

    /// The number of pages between the pool's start and the first page.
    #[must_use]
    pub const fn frame(self) -> usize {
        self.span.frame() as usize
    }

    /// The number of pages.
    #[must_use]
    pub const fn page_count(self) -> usize {
        self.span.count() as usize
    }

    /// The address and length of these pages in a pool. The pages may be allocated or free.
    ///
    /// # Panics
    /// If these are pages of another pool, or lie beyond the pool's end.
    #[must_use]
    pub fn bytes(self, pool: &Pool) -> NonNull<[u8]> {
        let inner = pool.inner();
        assert!(self.may_be_of(inner), "{self:?} do not belong to {pool:?}");
        NonNull::slice_from_raw_parts(first_byte(inner, self.span), self.page_count() * PAGE_BYTES)
    }

    /// Whether these pages can lie in this pool. The pages may be allocated or free.
    #[inline]
    fn may_be_of(self, pool: &Inner) -> bool {
        let end = self.span.frame().checked_add(self.span.count());
        self.pool.is_none_or(|id| id == pool.id) && end.is_some_and(|end| end <= pool.frames)
    }
}

impl PartialEq for RawPages {
    fn eq(&self, other: &Self) -> bool {
        self.span == other.span
    }
}

impl Eq for RawPages {}

impl Hash for RawPages {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.span.hash(state);
    }
}

impl fmt::Debug for RawPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawPages").field("frame", &self.frame()).field("count", &self.page_count()).finish()
    }
}

/// The address of the first byte of these pages of this pool.
#[inline(always)]
fn first_byte(pool: &Inner, span: Span) -> NonNull<u8> {
    // SAFETY: the pool does not begin at address zero, nor does a page in it.
    unsafe { NonNull::new_unchecked(pool.address(span.frame())) }
}

impl<'p> Pages<'p> {
    #[inline(always)]
    pub(crate) fn of_block(pool: &'p Inner, frame: u32, order: Order) -> Self {
        // INVARIANT: the caller has just allocated the block at `frame`.
        Self { pool, span: Span::block(frame, order) }
    }

    pub(crate) fn of_run(pool: &'p Inner, frame: u32, count: u32) -> Self {
        // INVARIANT: the caller has just allocated the run's frames.
        Self { pool, span: Span::of(frame, count) }
    }

    /// The number of pages.
    #[must_use]
    #[inline]
    pub fn page_count(&self) -> usize {
        self.span.count() as usize
    }

    /// Number of the first frame, counted from the pool's start.
    #[must_use]
    #[inline]
    pub fn pfn(&self) -> Pfn {
        Pfn(u64::from(self.span.frame()))
    }

    /// The number of bytes from the pool's start to these pages. In a shared pool, the result is also the
    /// offset of these pages in the pool's file.
    #[must_use]
    #[inline]
    pub fn offset(&self) -> usize {
        (self.span.frame() as usize) << PAGE_SHIFT
    }

    /// Address of the first byte.
    #[must_use]
    #[inline]
    pub fn as_ptr(&self) -> NonNull<u8> {
        first_byte(self.pool, self.span)
    }

    /// The frames.
    pub(crate) fn frames(&self) -> Range<u32> {
        self.span.frames()
    }

    /// Clears all pages. The beginning is cleared last, because programs usually touch the beginning first.
    pub(crate) fn clear(&mut self) {
        self.clear_part(0..self.page_count());
    }

    /// Clears some of the pages. The first bytes are cleared last, because programs usually touch the first
    /// bytes first.
    pub(crate) fn clear_part(&mut self, pages: Range<usize>) {
        let bytes = pages.start * PAGE_BYTES..pages.end * PAGE_BYTES;
        let outcome = pageset_pageops::clear(&mut self[bytes], Some(0));
        outcome.expect("pages are base pages, and begin with their first byte");
    }

    /// Keeps only the pages `keep`, counted from 0, and frees the other pages at once. O(log pages).
    ///
    /// # Panics
    /// If `keep` is empty or reaches beyond these pages.
    pub fn shrink_to(&mut self, keep: Range<usize>) {
        // INVARIANT: this value still owns the pages that remain in the span.
        self.pool.shrink(&mut self.span, keep);
    }

    /// Keeps the first `at` pages and returns the other pages. Each part is freed when it is dropped. O(log
    /// pages).
    ///
    /// ```
    /// use pageset::Pool;
    ///
    /// let pool = Pool::builder().size(64 << 20).build()?;
    /// let mut head = pool.alloc_run(10 << 20)?;
    /// let tail = head.split_off(512);
    /// assert_eq!((head.len(), tail.len()), (2 << 20, 8 << 20));
    /// drop(head); // the tail stays where it is
    /// // Parts of one length: cut them from the end.
    /// let mut first = pool.alloc_run(1 << 20)?;
    /// let others: Vec<_> = (1..8).rev().map(|part| first.split_off(part * 32)).collect();
    /// assert!(others.iter().all(|part| part.len() == first.len()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If one of the parts would be empty.
    pub fn split_off(&mut self, at: usize) -> Self {
        // INVARIANT: each frame is in exactly one of the two spans.
        Self { pool: self.pool, span: self.pool.split(&mut self.span, at) }
    }

    /// Adds the pages `next`, which must begin where these pages end, as the opposite of
    /// [`split_off`](Self::split_off). The two values may come from two allocations. O(log pages), and
    /// O(pages / 512) for large runs.
    ///
    /// ```
    /// use pageset::Pool;
    ///
    /// let pool = Pool::builder().size(64 << 20).build()?;
    /// let mut head = pool.alloc_run(10 << 20)?;
    /// let tail = head.split_off(512);
    /// head.join(tail).expect("they lie side by side");
    /// assert_eq!(head.len(), 10 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns `next` if `next` does not begin where these pages end, or belongs to another pool. Also
    /// returns `next` in a child of [`fork`](crate::Fork), and in a signal handler that interrupted an
    /// operation of the pool.
    pub fn join(&mut self, next: Self) -> Result<(), Self> {
        if !std::ptr::eq(self.pool, next.pool) || !self.pool.join(&mut self.span, next.span) {
            return Err(next);
        }
        // INVARIANT: `self` now owns the frames of `next`, so `next` must not free them.
        next.give_up();
        Ok(())
    }

    /// Frees these pages and gives their memory back to the system at once. Use `discard` for pages that you
    /// do not need again soon, such as the pages of a balloon. The pool knows that pages that went back are
    /// zero, so [`Pool::alloc_zeroed`](crate::Pool::alloc_zeroed) does not clear these pages. Returns the
    /// number of bytes that went back to the system. The result is 0 if this pool [gives no memory
    /// back](crate::Pool::trim), or if the system keeps the pages. The result is also 0 in a child of
    /// [`fork`](crate::Fork), and in a signal handler that interrupted an operation of the pool.
    ///
    /// ```
    /// use pageset::{Order, Pool};
    ///
    /// let pool = Pool::builder().size(64 << 20).build()?;
    /// let mut pages = pool.alloc(Order::THP)?;
    /// pages.fill(1);
    /// assert_eq!(pages.discard(), 2 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A discard is one system call. Discarding 2 MiB takes about 20 µs. If the pages are a part of a huge
    /// page, the system splits the huge page.
    pub fn discard(self) -> usize {
        let (pool, span) = (self.pool, self.give_up());
        pool.discard_span(span)
    }

    /// Gives the memory of some of these pages back to the system. The range `pages` counts from the first
    /// page. This value still owns the pages. The pages that went back read as zeros, and take memory again
    /// when they are written. Returns the number of bytes that went back to the system. The result is 0, and
    /// nothing has changed, in the cases that [`discard`](Self::discard) lists.
    ///
    /// ```
    /// use pageset::Pool;
    ///
    /// let pool = Pool::builder().size(64 << 20).build()?;
    /// let mut guest = pool.alloc_run(32 << 20)?;
    /// guest.fill(1);
    /// assert_eq!(guest.give_back(100..101), 4096);
    /// assert_eq!((guest[100 * 4096 - 1], guest[100 * 4096], guest[101 * 4096]), (1, 0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the range reaches beyond these pages.
    pub fn give_back(&mut self, pages: Range<usize>) -> usize {
        self.pool.give_back(&self.span.part(&pages))
    }

    /// Gives up ownership without freeing the pages. [`from_raw`](Self::from_raw) takes the pages back. If
    /// the pool is dropped before the pages are taken back, the pool's memory stays mapped.
    #[must_use = "the pages are lost unless they are taken back by `from_raw`"]
    pub fn into_raw(self) -> RawPages {
        RawPages { pool: Some(self.pool.id), span: self.give_up() }
    }

    /// Does the same as [`into_raw`](Self::into_raw) for code that knows the pool already, and returns the
    /// span alone.
    fn give_up(self) -> Span {
        let span = self.span;
        std::mem::forget(self);
        span
    }

    /// Takes back the result of [`give_up`](Self::give_up).
    ///
    /// # Safety
    /// `span` comes from `give_up` of pages of this pool, and is taken back only once.
    unsafe fn take_back(pool: &'p Inner, span: Span) -> Self {
        // INVARIANT: the caller promises that these pages are allocated and have no owner.
        Self { pool, span }
    }

    /// Takes back pages that [`into_raw`](Self::into_raw) gave up.
    ///
    /// If a caller frees pages twice, the pool may notice the double free only when it empties the CPU's
    /// array. When the pool notices a double free, the pool refuses the pages, and counts the free in
    /// [`Stats::bad_frees`](crate::Stats::bad_frees). Before the pool notices, the same pages may have two
    /// owners. [`from_raw_checked`](Self::from_raw_checked) checks before it takes pages back.
    ///
    /// # Panics
    /// If these are pages of another pool, or lie beyond the pool's end.
    ///
    /// # Safety
    /// `raw` comes from `into_raw` of pages of this pool, and is taken back only once.
    #[inline]
    pub unsafe fn from_raw(pool: &'p Pool, raw: RawPages) -> Self {
        let inner = pool.inner();
        assert!(raw.may_be_of(inner), "{raw:?} do not belong to {pool:?}");
        // SAFETY: the caller promises that `raw` are pages of this pool, and that no other value owns these
        // pages.
        unsafe { Self::take_back(inner, raw.span) }
    }

    /// Checks the pages, then does the same as [`from_raw`](Self::from_raw). Returns `None` for:
    ///
    /// - Pages of another pool, or beyond the pool's end.
    /// - Free pages, which may lie in the array of a CPU.
    /// - A part of a block, because pages must come back as they were given up. There is one exception. After
    ///   a [`Pool::trim`], a shortage or a [`shrink_to`](Self::shrink_to), the pool may know only which pages
    ///   of a pageblock are in use, and not their blocks. In a pageblock whose blocks the pool does not know,
    ///   the function accepts parts of blocks.
    ///
    /// The function also returns `None` if it cannot check the pages. The function cannot check pages in a
    /// child of [`fork`](crate::Fork), or in a signal handler whose thread was interrupted inside an
    /// operation of the same pool. Use `from_raw_checked` for debugging, and for callers in other languages.
    /// O(CPUs).
    ///
    /// # Safety
    /// The caller promises the same as for `from_raw`, because the check accepts pages that were freed and
    /// allocated again.
    pub unsafe fn from_raw_checked(pool: &'p Pool, raw: RawPages) -> Option<Self> {
        let (inner, _inside) = pool.enter().ok()?;
        let span = raw.span;
        if !raw.may_be_of(inner) || !inner.looks_allocated(span.frame()..span.frame() + span.count()) {
            return None;
        }
        // SAFETY: the caller promises the same as for `from_raw`.
        Some(unsafe { Self::take_back(inner, span) })
    }
}

impl Drop for Pages<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.pool.free_span(self.span);
    }
}

impl Deref for Pages<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the frames are mapped as long as the pool, which outlives 'p. Their bytes are initialised,
        // by the system or by an earlier owner. By the invariant, this value is their only owner.
        unsafe {
            std::slice::from_raw_parts(self.pool.address(self.span.frame()), self.page_count() * PAGE_BYTES)
        }
    }
}

impl DerefMut for Pages<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `self` is borrowed exclusively.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.pool.address(self.span.frame()),
                self.page_count() * PAGE_BYTES,
            )
        }
    }
}

impl AsRef<[u8]> for Pages<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for Pages<'_> {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl fmt::Debug for Pages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("frame", &self.span.frame()).field("count", &self.page_count()).finish()
    }
}
