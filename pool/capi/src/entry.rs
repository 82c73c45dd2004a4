//! A pool, and a table of the pages that C has.

use std::array;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use pageset::{CachedOrder, Order, PAGE_BYTES, Pages, Pool, RawPages};
use zerocopy::FromZeros;

use crate::failure::{FORKED, Failure};
use crate::held::Held;

/// A pool, and a table of the pages that C has.
///
/// # Invariants
/// `held` has a mark for each frame. If pages that C has begin at a frame, the frame's mark is the number of
/// these pages. If the number of pages is too large for one mark, the next two marks have further bits of
/// this number. All other marks are empty.
///
/// The marks are read and written without atomic exchanges, because one locked instruction costs more than an
/// allocation and its free together. Race: two threads free the same page at the same moment, and both
/// succeed. The header forbids such a double free, and the pool detects the double free later (`bad_frees`).
pub(crate) struct Entry {
    /// The handle of the pool.
    pub(crate) handle: usize,
    /// The index of an entry is the number of an order. The entry is not `None` if restartable sequences use
    /// the arrays of this order. With 16 entries, an index below 16 needs no bounds check.
    cached: [Option<CachedOrder>; 16],
    pub(crate) pool: Pool,
    held: Box<[AtomicU16]>,
}

/// The outcome of a push.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Push {
    Done,
    /// C has no block of this order at the address, or no array has blocks of this order. Nothing has
    /// changed.
    Refused,
    /// The array has no room. The block's mark is cleared, but the pool does not have the block yet.
    Unpushed,
}

impl Entry {
    /// Makes an entry without a handle, in a box.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(crate) fn new(pool: Pool) -> Result<Box<[Self; 1]>, Failure> {
        const NO_TABLE: Failure =
            Failure::new(libc::ENOMEM, "no memory for a table of 2 bytes for each page of the pool");
        let mut list = Vec::new();
        list.try_reserve_exact(1).map_err(|_| NO_TABLE)?;
        // The system provides zeroed memory, so only the used parts of the table become resident.
        let held = <[AtomicU16]>::new_box_zeroed_with_elems(pool.page_count()).map_err(|_| NO_TABLE)?;
        let order = |index: usize| Order::new(index as u8).filter(|_| pool.uses_rseq());
        let cached = array::from_fn(|index| order(index).and_then(CachedOrder::of));
        list.push(Self { handle: 0, cached, pool, held });
        // The list's length equals its capacity, so the conversion moves nothing.
        list.into_boxed_slice().try_into().map_err(|_| NO_TABLE)
    }

    /// Whether C has no pages of the pool. O(pages that were touched).
    pub(crate) fn is_all_back(&self) -> bool {
        let is_free = |held: &AtomicU16| held.load(Relaxed) == Held::NOTHING.0;
        self.pool.frames_in_use().all(|frames| self.held[frames].iter().all(is_free))
    }

    /// Gives C a block of this CPU's array. Returns `None` if [`Pool::pop_frame`] returns `None`, or if no
    /// array has blocks of this order.
    #[inline(always)]
    pub(crate) fn pop(&self, order: usize) -> Option<*mut c_void> {
        let order = (*self.cached.get(order)?)?;
        let frame = self.pool.pop_frame(order)? as usize;
        self.held.get(frame).unwrap_or_else(|| beyond_table()).store(Held::block(order).0, Relaxed);
        Some(self.pool.start().wrapping_byte_add(frame * PAGE_BYTES).cast_mut().cast())
    }

    /// Takes a block back from C, and puts it into this CPU's array.
    ///
    /// After `Unpushed`, the caller must call [`free_unpushed`](Self::free_unpushed). A `Push` has no data,
    /// so that the caller keeps no registers for the result.
    #[inline(always)]
    pub(crate) fn push(&self, address: usize, order: usize) -> Push {
        let Some(Some(order)) = self.cached.get(order).copied() else { return Push::Refused };
        let frame = self.frame(address);
        let Some(held) = self.held.get(frame) else { return Push::Refused };
        if held.load(Relaxed) != Held::block(order).0 {
            return Push::Refused;
        }
        // Clear the mark before the push. After the push, another thread may get the block and set its mark.
        held.store(Held::NOTHING.0, Relaxed);
        // SAFETY: by the invariant, C had this block. The block's mark was cleared above, so no other code
        // can free the block.
        if unsafe { self.pool.push_frame(frame as u32, order) } { Push::Done } else { Push::Unpushed }
    }

    /// Frees a block after [`push`](Self::push) has returned `Unpushed`.
    ///
    /// # Errors
    /// `EPERM` in a child of `fork`. After `EPERM`, C still has the block.
    pub(crate) fn free_unpushed(&self, address: usize, page_count: usize) -> Result<(), Failure> {
        let frame = self.frame(address);
        self.note(frame, page_count);
        drop(self.take_back(address, page_count)?);
        Ok(())
    }

    /// Gives pages to C. Returns their address.
    pub(crate) fn hand_out(&self, pages: Pages<'_>) -> *mut c_void {
        let address = pages.as_ptr().as_ptr();
        let raw = pages.into_raw();
        self.note(raw.frame(), raw.page_count());
        address.cast()
    }

    /// Notes that C has these pages.
    fn note(&self, frame: usize, page_count: usize) {
        let marks = Held::pages(frame, page_count).into_iter().filter(|mark| *mark != Held::NOTHING);
        self.held.iter().skip(frame).zip(marks).for_each(|(held, mark)| held.store(mark.0, Relaxed));
    }

    /// Notes that C no longer has these pages.
    fn forget(&self, frame: usize, page_count: usize) {
        let marks = Held::pages(frame, page_count).into_iter().filter(|mark| *mark != Held::NOTHING);
        self.held.iter().skip(frame).zip(marks).for_each(|(held, _)| held.store(Held::NOTHING.0, Relaxed));
    }

    /// The number of pages that C has at an address. `None` if no pages of C begin at this address.
    pub(crate) fn page_count(&self, address: usize) -> Option<usize> {
        let frame = self.frame(address);
        let mark = |at: usize| self.held.get(frame.checked_add(at)?).map(|held| Held(held.load(Relaxed)));
        mark(0)?;
        Held::page_count([0, 1, 2].map(|at| mark(at).unwrap_or(Held::NOTHING)))
    }

    /// Takes pages back from C.
    ///
    /// # Errors
    /// `EINVAL` if not exactly `page_count` pages of C begin at `address`, `EPERM` in a child of `fork`.
    pub(crate) fn take_back(&self, address: usize, page_count: usize) -> Result<Pages<'_>, Failure> {
        let frame = self.frame(address);
        match RawPages::new(frame, page_count).filter(|_| self.page_count(address) == Some(page_count)) {
            Some(raw) if !self.pool.is_in_child() => {
                self.forget(frame, page_count);
                // SAFETY: by the invariant, C had these pages, so `into_raw` gave them up. `forget` cleared
                // the marks of these pages, so no other code can take the pages back.
                Ok(unsafe { Pages::from_raw(&self.pool, raw) })
            }
            _ => Err(self.why_not(address, page_count)),
        }
    }

    /// Takes back all pages that C has at an address.
    ///
    /// # Errors
    /// The errors of [`take_back`](Self::take_back).
    pub(crate) fn take_back_all(&self, address: usize) -> Result<Pages<'_>, Failure> {
        self.take_back(address, self.page_count(address).unwrap_or(0))
    }

    /// The number of the frame that begins at an address. If no frame of the pool begins at this address, a
    /// number beyond the pool's frames.
    #[inline(always)]
    fn frame(&self, address: usize) -> usize {
        // For an address inside of a page, the rotation moves the low bits to the top.
        address.wrapping_sub(self.pool.start().addr()).rotate_right(PAGE_BYTES.trailing_zeros())
    }

    /// The error of a call that could not take pages back.
    #[cold]
    fn why_not(&self, address: usize, page_count: usize) -> Failure {
        if self.pool.is_in_child() {
            return FORKED;
        }
        let frame = self.frame(address);
        let because = |why| Failure::with_text(libc::EINVAL, why);
        match self.page_count(address) {
            _ if address == 0 => because(format_args!("NULL is not a page")),
            _ if frame >= self.held.len() => because(format_args!("{address:#x} is not a page of this pool")),
            None => because(format_args!(
                "no pages that begin at {address:#x} are handed out: they are free already, or inside of a block"
            )),
            Some(handed_out) => {
                because(format_args!("{handed_out} pages are handed out at {address:#x}, not {page_count}"))
            }
        }
    }
}

/// Panics, because pageset has a bug: the pool handed out a page outside of the pool. (The function uses C's
/// calling convention, so that the fast path needs no stack frame for the call.)
#[cold]
#[inline(never)]
extern "C" fn beyond_table() -> ! {
    panic!("the pool has handed out a page that it does not have");
}
