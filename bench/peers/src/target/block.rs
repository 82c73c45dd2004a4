//! One allocated block, as rows see it.

use std::ptr::NonNull;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Which line of each page is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The first one, as page_fault1 does. Of contiguous memory, these lines lie in few of a cache's sets.
    First,
    /// In each page the next one.
    Next,
}

impl Line {
    /// Where in its page the line of a block's page begins.
    #[inline]
    pub(super) const fn offset(self, page: usize) -> usize {
        match self {
            Self::First => 0,
            Self::Next => page * LINE % PAGE,
        }
    }
}

/// What rows do with a block besides freeing it.
pub(crate) trait Held: Send {
    /// Where it begins.
    fn address(&self) -> usize;

    /// The number of the page it begins with.
    fn page(&self) -> usize {
        self.address() / PAGE
    }

    /// Writes to each of its pages; `order` is that of the allocation.
    fn touch(&mut self, order: u32, line: Line);
}

/// A block that its holder may write to until it gives it back.
///
/// Rows free a block with the order it was allocated with, to the target it came from.
#[derive(Debug)]
pub(crate) struct Block(NonNull<u8>);

impl Block {
    /// The block that begins at `start`; `None` for a null pointer.
    ///
    /// # Safety
    /// Unless `start` is null, the block of the order that was asked for begins there, may be written to, and
    /// belongs to nobody else.
    #[inline]
    pub(super) unsafe fn new(start: *mut u8) -> Option<Self> {
        NonNull::new(start).map(Self)
    }

    /// Where it begins; for the target that takes it back.
    #[inline]
    pub(super) fn into_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }
}

impl Held for Block {
    #[inline]
    fn address(&self) -> usize {
        self.0.addr().get()
    }

    #[inline]
    fn touch(&mut self, order: u32, line: Line) {
        for page in 0..1 << order {
            // SAFETY: the block has this many pages, as rows ask with the order they allocated it with.
            let start = unsafe { self.0.add(page * PAGE + line.offset(page)) };
            // SAFETY: the page belongs to the holder and may be written to.
            unsafe { start.write_volatile(1) };
        }
    }
}

// SAFETY: a block is memory and nothing else; every target here lets any thread free it.
unsafe impl Send for Block {}
