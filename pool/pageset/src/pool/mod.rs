//! The pool: the paths of an allocation and of a free.
//!
//! An allocation begins in `alloc`, which takes a block from this CPU's array. If the array is empty,
//! `refill` fetches half an array from the base. A free begins in `free`, and `flush` moves half a full array
//! to the base. `drain` empties all arrays. `cached` has the fast path alone, for other languages.
//!
//! Other requests are in `shapes` (many pages, or a given block) and `run` (contiguous pages). `shortage`
//! asks the program to free pages. `giveback` returns idle memory, `populate` makes memory resident, and
//! `resize` changes the size. `capacity`, `counts`, `stats` and `truth` have numbers and reports. `fork`
//! checks whether the caller may use the pool. In `hand_over`, a child takes its parent's pool over.
//!
//! # The words for moves of pages
//!
//! | word | from | to |
//! |---|---|---|
//! | alloc | the array or the base | a user |
//! | pop | this CPU's array | a user |
//! | refill | the base | this CPU's array, half of it |
//! | fetch | the base | a refill, or a bulk allocation |
//! | free | a user | the array or the base |
//! | push | a user | this CPU's array |
//! | flush | this CPU's array, half of it | the base |
//! | pass on | an array | the base, all as they are, for the next fetch |
//! | drain | the arrays of all CPUs, and what was passed on | the base |
//! | isolate | the base | no user, until a release |
//!
//! Frames that users and arrays have are charged to the capacity. Frames in the base are not charged.

mod alloc;
mod cached;
mod capacity;
mod counts;
mod drain;
mod flush;
mod fork;
mod free;
mod giveback;
mod hand_over;
mod populate;
mod refill;
mod resize;
mod run;
mod shapes;
mod shortage;
mod stats;
mod truth;

use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

pub use cached::CachedOrder;
pub(crate) use capacity::Capacity;
pub(crate) use counts::Counts;
pub use giveback::Trimmed;
pub(crate) use hand_over::HandOver;
pub use hand_over::TakeOverError;
pub use populate::{PopulateProgress, Populated};
pub(crate) use shortage::OnShortage;
pub use stats::Stats;
pub use truth::BackingReport;

use crate::background::Background;
use crate::base::Base;
use crate::ledger::Ledger;
use crate::lock::Lock;
use crate::percpu::PerCpu;
use crate::sys::advice::Giveback;
use crate::sys::share::Shared;
use crate::sys::{Mapping, PAGE_SHIFT};
use crate::{Backing, Builder, Prezero, ReturnPolicy};

/// A pool of pages.
///
/// All methods may be called from any thread. [`Pages`](crate::Pages) borrow from the pool, and
/// [`OwnedPages`](crate::OwnedPages) keep the pool alive.
///
/// Dropping a pool unmaps the memory that the pool mapped, except if the program still has pages from
/// [`Pages::into_raw`](crate::Pages::into_raw), or has forgotten pages. A device or other code may use the
/// addresses of pages without an owner, so the pool's memory and tables then stay until the program ends. If
/// `stats().nr_used` is 0, all pages have come back.
///
/// # Signal handlers
/// A signal handler may allocate pages and drop them. If the handler interrupted its thread inside an
/// operation of the same pool, pages that the handler drops are freed a little later. An allocation in such a
/// handler returns [`AllocError::WouldBlock`](crate::AllocError::WouldBlock) if this CPU's array cannot serve
/// the allocation. In a handler that interrupted an operation of the same pool, other methods do nothing, as
/// in a child of [`Fork`](crate::Fork). No method waits for the operation that a signal handler interrupted.
/// A handler must not call [`Pool::populate`] or [`Pool::backing`], and must not build or drop a pool.
pub struct Pool {
    /// The pool's thread, if the pool has a thread. `drop` stops the thread before it drops the last
    /// reference to `inner`. A child of `fork` must not wait for the lock of `background`, and must not drop
    /// the parent's thread.
    background: ManuallyDrop<Lock<Option<Background>>>,
    inner: Shared<Inner>,
}

/// Identifies a pool of this process. No later pool gets the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolId(NonZeroU64);

impl PoolId {
    /// A number that no other pool has.
    pub(crate) fn next() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // INVARIANT: 2^64 pools are never made.
        Self(NonZeroU64::MIN.saturating_add(COUNT.fetch_add(1, Relaxed)))
    }
}

/// The part of a pool that its thread and its pages use.
pub(crate) struct Inner {
    /// The arrays, which serve most allocations and frees.
    pub(crate) percpu: PerCpu,
    pub(crate) memory: Mapping,
    pub(crate) base: Base,
    pub(crate) ledger: Ledger,
    pub(crate) capacity: Capacity,
    pub(crate) counts: Counts,
    pub(crate) frames: u32,
    /// The kind of memory that the builder asked for.
    pub(crate) asked: Backing,
    /// The kind of memory that the system provided.
    pub(crate) backing: Backing,
    /// The system call that gives free memory back while the pool is not pinned.
    pub(crate) unpinned_giveback: Giveback,
    pub(crate) is_pinned: AtomicBool,
    /// The policy for idle memory, which [`returns`](Self::returns) copies.
    pub(crate) policy: Lock<ReturnPolicy>,
    /// The program's function that frees pages when none are left.
    pub(crate) on_shortage: Option<OnShortage>,
    /// Identifies this pool in the process.
    pub(crate) id: PoolId,
    /// The number of bytes in service since the last resize.
    pub(crate) in_service: AtomicUsize,
    /// A thread holds the lock `worker` while the thread starts or ends the pool's thread.
    pub(crate) worker: Lock<()>,
    /// Allows only one drain of the arrays at a time.
    pub(crate) drain: Lock<()>,
    /// The number of pageblocks out of service. The ledger marks pageblocks out of service as `Retired`.
    pub(crate) retired: Lock<usize>,
    /// A thread holds the lock `returning` while the thread isolates free blocks for a moment, to discard or
    /// clear the blocks.
    pub(crate) returning: Lock<()>,
    /// The number of the first pageblock that was not populated. Until the next trim, pageblocks below this
    /// number are not idle memory.
    pub(crate) populated_blocks: AtomicU32,
    /// The first entry of the list of deferred pages, or 0 for an empty list. Signal handlers could not free
    /// these pages at once, because their threads were inside of the pool.
    pub(crate) deferred: AtomicU64,
    /// The state that the last scan for idle memory left for the next scan.
    pub(crate) looks: Lock<giveback::Look>,
    /// Set if a child may take the pool over.
    pub(crate) hand_over: Option<HandOver>,
}

// A pool calls `on_shortage` and `progress` only between its own changes, and holds no lock of its tables.
// The pool therefore still works after `on_shortage` or `progress` has panicked. Pages refer to the pool, and
// still work too.
impl UnwindSafe for Pool {}
impl RefUnwindSafe for Pool {}
impl RefUnwindSafe for Inner {}

impl Inner {
    /// Whether neither a user nor an array has a page of this pool.
    pub(crate) fn is_all_free(&self) -> bool {
        self.capacity.out() == 0
    }

    /// Whether users still have pages when the pool is dropped. The memory of a pool whose pages users still
    /// have must stay mapped.
    fn has_raw_pages(&self) -> bool {
        let _inside = self.enter();
        self.memory.is_ours() && self.capacity.out() > self.percpu.frames()
    }

    /// Whether a policy gives the pool's thread any work.
    pub(crate) fn has_work(&self, returns: &ReturnPolicy) -> bool {
        self.giveback() != Giveback::Never || returns.prezero != Prezero::Off
    }

    /// The system call that gives free memory back now. A pinned pool gives nothing back. While a thread
    /// holds `returning`, other threads cannot pin the pool.
    pub(crate) fn giveback(&self) -> Giveback {
        if self.is_pinned.load(Relaxed) { Giveback::Never } else { self.unpinned_giveback }
    }

    /// The current policy for idle memory.
    pub(crate) fn returns(&self) -> ReturnPolicy {
        *self.policy.lock()
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
    /// Begins to build a pool: `Pool::builder().size(1 << 30).build()?`.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Makes a pool without a thread.
    pub(crate) fn new(inner: Shared<Inner>) -> Self {
        Self { background: ManuallyDrop::new(Lock::new(None)), inner }
    }

    /// Starts the pool's thread. In a child of `fork` that takes the pool over, the new thread replaces the
    /// parent's thread, which the child does not have. The caller has the lock `worker`, or is the only user
    /// of the pool.
    pub(crate) fn start_thread(&self) -> io::Result<()> {
        let mut background = self.background.lock();
        let thread = Background::start(&self.inner)?;
        background.replace(thread).into_iter().for_each(Background::abandon);
        Ok(())
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Pages of 4 KiB in the pool.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.inner.frames as usize
    }

    /// The address and length of the whole pool. To register the pool with a device, see
    /// [`pinned`](Builder::pinned).
    #[must_use]
    pub fn memory(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.inner.memory.start(), self.inner.memory.bytes())
    }

    /// The frames of all pageblocks that were used since their memory last went back to the system. A program
    /// with a table of frames needs to search only the entries of the returned frames.
    #[doc(hidden)]
    pub fn frames_in_use(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let (frames, of_block) = (self.inner.frames, pageset_core::PAGEBLOCK_FRAMES);
        let blocks = self.inner.ledger.blocks_in_use(0..frames.div_ceil(of_block));
        blocks.map(move |block| {
            let first = block * of_block;
            first as usize..frames.min(first + of_block) as usize
        })
    }

    /// The address of the pool's first byte. Add [`Pages::offset`](crate::Pages::offset) to get the address
    /// of a block.
    #[must_use]
    pub fn start(&self) -> *const u8 {
        self.inner.memory.start().as_ptr()
    }

    /// The file of a pool with [`Backing::Memfd`] or [`Backing::Hugetlb`]. Another process can map the file,
    /// and find pages by their [offset](crate::Pages::offset). The file's size is sealed. The file's contents
    /// are not sealed, because the pool writes to the file. If the file has huge pages, a mapping must
    /// consist of whole huge pages, and `write` to the file fails.
    ///
    /// # Safety
    /// No process may use this descriptor to touch memory that has another user:
    ///
    /// - While this process has a reference to the bytes of [`Pages`](crate::Pages), no process writes to
    ///   these bytes or punches a hole there. A write through a mapping of the file counts, like a write
    ///   through the file. If the reference is exclusive, no process reads these bytes through a mapping
    ///   either.
    /// - No process changes the bytes of free pages, because the pool remembers which free pages are zero.
    ///
    /// If several processes use the same bytes at the same time, access them through
    /// [`Pages::as_ptr`](crate::Pages::as_ptr) and not through references.
    #[must_use]
    #[expect(unsafe_code, reason = "the file can change memory behind references")]
    pub unsafe fn memfd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.memory.memfd()
    }

    /// Whether the fast path uses restartable sequences.
    #[must_use]
    pub fn uses_rseq(&self) -> bool {
        self.inner.percpu.uses_sequences()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.inner.is_in_child() {
            // A child does not have the pool's thread, so do not wait for the thread. Do not unmap memory
            // either: with `Fork::Hide`, the child may have other memory at the pool's addresses.
            std::mem::forget(self.inner.clone());
            return;
        }
        let background = self.background.lock().take();
        if self.inner.hand_over.is_some() {
            self.forget_forks();
        }
        if let Some(background) = background {
            background.stop();
        }
        if self.inner.has_raw_pages() {
            // C code, a device or another process may still use the addresses of pages that users have.
            std::mem::forget(self.inner.clone());
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
