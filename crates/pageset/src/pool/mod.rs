//! The pool: which way an allocation or a free takes.
//!
//! Files in the order of an allocation: here the fast path; `exchange` (many blocks between arrays,
//! depot and core), `shapes` (bulk, exact counts, given places), `giveback` (idle memory goes back), `populate`, `resize`, `stats`, `truth`
//! (what one really got), and for all of them `fork` (who may use a pool at all).

mod capacity;
mod counts;
mod exchange;
mod fork;
mod giveback;
mod populate;
mod resize;
mod shapes;
mod stats;
mod truth;

use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use pageset_core::Order;

pub(crate) use capacity::Capacity;
pub(crate) use counts::Counts;
pub use giveback::Trimmed;
pub use populate::{PopulateProgress, Populated};
pub use stats::Stats;
pub use truth::BackingReport;

use crate::arrays::{Caps, Class, CpuArrays, Entry, StackAt, ZeroState};
use crate::background::Background;
use crate::core::Core;
use crate::depot::Depot;
use crate::error::AllocError;
use crate::ledger::Ledger;
use crate::pages::Span;
use crate::rseq::{self, Area, HotPage};
use crate::sys::advice::Giveback;
use crate::sys::{Mapping, PAGE_SHIFT, cpu};
use crate::{Backing, Builder, Pages, ReturnPolicy};

/// A pool of pages.
///
/// All methods may be called from any thread. Pages borrow from the pool; for pages that live as long as the program,
/// see [`Pool::leak`].
pub struct Pool {
    // Stopped before the last reference to `inner` here goes.
    background: Option<Background>,
    inner: Arc<Inner>,
}

/// What a pool's thread and its pages see of it.
pub(crate) struct Inner {
    pub(crate) hot: HotPage,
    /// Set if arrays are changed by restartable sequences; otherwise they are locked.
    pub(crate) area: Option<Area>,
    pub(crate) memory: Mapping,
    pub(crate) core: Core,
    /// Pageblocks between the arrays and the core. Its lock comes before the core's.
    pub(crate) depot: parking_lot::Mutex<Depot>,
    pub(crate) ledger: Ledger,
    pub(crate) caps: Caps,
    pub(crate) capacity: Capacity,
    pub(crate) counts: Counts,
    pub(crate) frames: u32,
    pub(crate) backing: Backing,
    pub(crate) giveback: Giveback,
    pub(crate) returns: ReturnPolicy,
    /// One drain of the arrays at a time.
    pub(crate) drain: parking_lot::Mutex<()>,
    /// Pageblocks that are out of service.
    pub(crate) retired: parking_lot::Mutex<Vec<u32>>,
    /// Held while free blocks are out of the core for a moment, to be given back or cleared.
    pub(crate) returning: parking_lot::Mutex<()>,
    /// Pageblocks below this one were populated, and stay until the next trim.
    pub(crate) populated_blocks: AtomicU32,
    /// What the last look at idle memory saw.
    pub(crate) looks: parking_lot::Mutex<giveback::Look>,
}

impl Inner {
    /// Takes a block of this order from this CPU's array.
    #[inline(always)]
    fn pop_order(&self, order: Order) -> Option<Entry> {
        match (self.area, StackAt::of(order)) {
            (Some(area), Some(stack)) => rseq::pop(&self.hot, area, stack),
            (None, Some(_)) => self.pop_locked(order),
            (_, None) => None,
        }
    }

    /// Frees a block or a run of frames.
    #[inline(always)]
    pub(crate) fn free_span(&self, span: Span) {
        if let Some(area) = self.area
            && let Some(stack) = span.stack()
            && rseq::push(&self.hot, area, stack, Entry::dirty(span.frame()))
        {
            return;
        }
        self.free_otherwise(span);
    }

    /// Frees under a lock, or past the arrays. One call, so that the fast path around it is small enough to be inlined
    /// where pages are dropped.
    #[inline(never)]
    fn free_otherwise(&self, span: Span) {
        let class = span.class();
        let is_free = class
            .is_some_and(|class| self.area.is_none() && self.push_locked(class, Entry::dirty(span.frame())));
        if !is_free {
            self.free_slow(span.frame(), class, span.count());
        }
    }

    /// Takes a block from this CPU's array.
    #[inline(always)]
    pub(crate) fn pop(&self, class: Class) -> Option<Entry> {
        match self.area {
            Some(area) => rseq::pop(&self.hot, area, StackAt::of_class(class)),
            None => self.pop_locked(class.order()),
        }
    }

    /// Puts a block into this CPU's array.
    pub(crate) fn push(&self, class: Class, entry: Entry) -> bool {
        match self.area {
            Some(area) => rseq::push(&self.hot, area, StackAt::of_class(class), entry),
            None => self.push_locked(class, entry),
        }
    }

    #[inline(never)]
    fn pop_locked(&self, order: Order) -> Option<Entry> {
        self.locked_arrays()?.try_pop(Class::of(order)?)
    }

    #[inline(never)]
    fn push_locked(&self, class: Class, entry: Entry) -> bool {
        self.locked_arrays().is_some_and(|cpu| cpu.try_push(class, entry))
    }

    /// Whether nobody has a page, and no array.
    pub(crate) fn is_all_free(&self) -> bool {
        self.capacity.out() == 0
    }

    /// This CPU's arrays, if they are locked for each use.
    pub(crate) fn locked_arrays(&self) -> Option<&CpuArrays> {
        if self.area.is_some() || self.is_in_child() {
            return None;
        }
        self.hot.current().get(cpu::current())
    }

    /// Whether the CPU that runs this thread has an array, as far as one can say.
    pub(crate) fn has_array(&self) -> bool {
        let cpu = match self.area {
            Some(area) => rseq::cpu(area),
            None => cpu::current(),
        };
        cpu < self.hot.current().len()
    }

    #[inline(always)]
    pub(crate) fn address(&self, frame: u32) -> *mut u8 {
        self.memory.start().as_ptr().wrapping_add((frame as usize) << PAGE_SHIFT)
    }
}

/// The bytes of a range of frames, from the pool's start.
pub(crate) fn bytes_of(frames: &Range<u32>) -> Range<usize> {
    (frames.start as usize) << PAGE_SHIFT..(frames.end as usize) << PAGE_SHIFT
}

impl Pool {
    /// How a pool is built: `Pool::builder().size(1 << 30).build()?`.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(inner: Arc<Inner>, background: Option<Background>) -> Self {
        Self { background, inner }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Allocates a block of `2^order` pages, aligned to its size. Its contents are unspecified.
    ///
    /// O(1) from this CPU's array; otherwise O(blocks moved) under one or two locks.
    ///
    /// # Errors
    /// [`AllocError::OutOfMemory`], [`AllocError::OverCapacity`], [`AllocError::Forked`].
    #[inline]
    pub fn alloc(&self, order: Order) -> Result<Pages<'_>, AllocError> {
        match self.inner.pop_order(order) {
            Some(block) => Ok(Pages::of_block(&self.inner, block.frame(), order)),
            // Pages are made on both sides, so that they need not meet in one register on the fast one.
            None => self.alloc_slow(order),
        }
    }

    #[cold]
    fn alloc_slow(&self, order: Order) -> Result<Pages<'_>, AllocError> {
        let block = self.inner.alloc_slow(order)?;
        Ok(Pages::of_block(&self.inner, block.frame(), order))
    }

    /// As [`alloc`](Self::alloc), all bytes zero. Only what is not known to be zero is cleared: memory fresh from the
    /// system, given back to it, or cleared in idle time is known. What is cleared leaves its beginning in the cache.
    ///
    /// # Errors
    /// As `alloc`.
    #[inline]
    pub fn alloc_zeroed(&self, order: Order) -> Result<Pages<'_>, AllocError> {
        let block = self.inner.pop_order(order).map_or_else(|| self.inner.alloc_slow(order), Ok)?;
        let mut pages = Pages::of_block(&self.inner, block.frame(), order);
        if block.zero() == ZeroState::Unknown {
            self.inner.counts.note_cleared(order.frames());
            pages.clear();
        }
        Ok(pages)
    }

    /// Gives the pool up as a value: its pages may live as long as the program.
    #[must_use]
    pub fn leak(self) -> &'static Self {
        Box::leak(Box::new(self))
    }

    /// Pages of 4 KiB in the pool.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.inner.frames as usize
    }

    /// Where the pool begins. A block's distance from here is [`Pages::offset`].
    #[must_use]
    pub fn start(&self) -> *const u8 {
        self.inner.memory.start().as_ptr()
    }

    /// The file of a pool that is backed by [`Backing::Memfd`]: another process maps it, and finds pages by their
    /// [offset](Pages::offset). Its size is sealed; its contents cannot be, since the pool writes them.
    ///
    /// # Safety
    /// Whoever gets at the file by this descriptor, in whatever process, leaves alone what somebody else uses:
    /// - While there is a reference to the bytes of [`Pages`] in this process, nothing changes them through the file or a
    ///   mapping of it: no write, no hole. If the reference is exclusive, nothing reads them through a mapping either.
    /// - Bytes of pages that nobody has are not changed at all: some are known to be zero.
    ///
    /// Memory that several processes use at the same time is used through [`Pages::as_ptr`], without references.
    #[must_use]
    #[expect(unsafe_code, reason = "who has the file can change memory behind references")]
    pub unsafe fn memfd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.memory.memfd()
    }

    /// Whether the fast path uses restartable sequences.
    #[must_use]
    pub fn uses_rseq(&self) -> bool {
        self.inner.area.is_some()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let background = self.background.take();
        if self.inner.is_in_child() {
            // There is no such thread to wait for. Nor is anything unmapped: where a pool is hidden, its addresses may be
            // somebody else's in the child.
            std::mem::forget((background, Arc::clone(&self.inner)));
        } else if let Some(background) = background {
            background.stop();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("start", &self.start())
            .field("pages", &self.page_count())
            .field("backing", &self.inner.backing)
            .field("uses_rseq", &self.uses_rseq())
            .finish_non_exhaustive()
    }
}
