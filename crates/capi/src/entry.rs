//! A pool, and which pages are handed out of it.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use pageset::{Order, PAGE_BYTES, Pages, Pool, RawPages};
use zerocopy::FromZeros;

use crate::failure::{FORKED, Failure};

/// A pool, and which pages are handed out of it.
///
/// # Invariants
/// `handed_out` has for the first frame of pages that C has how many they are, and 0 for every other frame.
///
/// It is read and written without exchanges, since one locked instruction costs more than a whole pair of allocation and free.
/// So two threads that free the same page at the same moment are not told apart; the header forbids it, and the pool itself
/// finds it later (`bad_frees`).
pub(crate) struct Entry {
    /// The handle that names it.
    pub(crate) handle: usize,
    pub(crate) pool: Pool,
    handed_out: Box<[AtomicU16]>,
}

impl Entry {
    pub(crate) fn new(pool: Pool) -> Result<Self, Failure> {
        // Zeroed by the system: memory is resident only where pages are handed out.
        let handed_out = <[AtomicU16]>::new_box_zeroed_with_elems(pool.page_count());
        let no_table =
            Failure::new(libc::ENOMEM, "no memory for a table of 2 bytes for each page of the pool");
        Ok(Self { handle: 0, pool, handed_out: handed_out.map_err(|_| no_table)? })
    }

    /// Whether C has no pages of it. O(pages of the pool).
    pub(crate) fn is_all_back(&self) -> bool {
        self.handed_out.iter().all(|count| count.load(Relaxed) == 0)
    }

    /// Gives pages to C.
    #[inline(always)]
    pub(crate) fn hand_out(&self, pages: Pages<'_>) -> *mut c_void {
        let address = pages.as_ptr().as_ptr();
        let raw = pages.into_raw();
        self.handed_out[raw.frame()].store(raw.page_count() as u16, Relaxed);
        address.cast()
    }

    /// Takes back a block that C has. `None` if it has no such block: [`Self::why_not`] says why.
    #[inline(always)]
    pub(crate) fn take_block(&self, address: usize, order: Order) -> Option<Pages<'_>> {
        let frame = self.frame(address);
        let count = self.handed_out.get(frame)?;
        let raw = RawPages::block(frame, order)?;
        if u32::from(count.load(Relaxed)) != order.frames() || self.pool.is_in_child() {
            return None;
        }
        count.store(0, Relaxed);
        // SAFETY: by the invariant C has these pages, so they were given up by `into_raw`; now it has them no more.
        Some(unsafe { Pages::from_raw(&self.pool, raw) })
    }

    /// As [`take_block`](Self::take_block), for a count.
    pub(crate) fn take_run(&self, address: usize, page_count: usize) -> Option<Pages<'_>> {
        let frame = self.frame(address);
        let count = self.handed_out.get(frame)?;
        let raw = RawPages::run(frame, page_count)?;
        if usize::from(count.load(Relaxed)) != page_count || self.pool.is_in_child() {
            return None;
        }
        count.store(0, Relaxed);
        // SAFETY: as in `take_block`.
        Some(unsafe { Pages::from_raw(&self.pool, raw) })
    }

    /// Which frame begins at an address; one beyond the pool if none does.
    #[inline(always)]
    fn frame(&self, address: usize) -> usize {
        // Of an address inside of a page, the bits below the page's become the highest.
        address.wrapping_sub(self.pool.start().addr()).rotate_right(PAGE_BYTES.trailing_zeros())
    }

    /// Why pages are not taken back.
    #[cold]
    pub(crate) fn why_not(&self, address: usize, page_count: usize) -> Failure {
        if self.pool.is_in_child() {
            return FORKED;
        }
        let why = match self.handed_out.get(self.frame(address)).map(|count| count.load(Relaxed)) {
            _ if address == 0 => "NULL is no page".to_owned(),
            None => format!("{address:#x} is no page of this pool"),
            Some(0) => {
                format!(
                    "no pages that begin at {address:#x} are handed out: they are free already, or inside of a block"
                )
            }
            Some(count) => format!("{count} pages are handed out at {address:#x}, not {page_count}"),
        };
        Failure::with_text(libc::EINVAL, why)
    }
}
