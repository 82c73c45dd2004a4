//! One allocated block, as rows use it.

use std::ptr::NonNull;

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Which line of each page a touch writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The first line, as page_fault1 does. In contiguous memory, these lines share few of a cache's sets.
    First,
    /// In each page, the line after the one that was written in the page before.
    Next,
}

impl Line {
    /// The offset of this line in a page of a block.
    #[inline]
    pub(super) const fn offset(self, page: usize) -> usize {
        match self {
            Self::First => 0,
            Self::Next => page * LINE % PAGE,
        }
    }
}

/// The operations of rows on a block, besides freeing it.
pub(crate) trait Held: Send {
    /// The block's first byte.
    fn start(&self) -> *mut u8;

    /// The number of the block's first page.
    fn page(&self) -> usize {
        self.start().addr() / PAGE
    }

    /// Writes to each of its pages. The block was allocated with `order`.
    fn touch(&mut self, order: u32, line: Line);

    /// Writes to all bytes of a single page.
    fn fill(&mut self);
}

/// A block that its holder may write to until it is freed.
///
/// Rows free a block with the order it was allocated with, to the target it came from.
#[derive(Debug)]
pub(crate) struct Block(NonNull<u8>);

impl Block {
    /// The block that begins at `start`; `None` for a null pointer.
    ///
    /// # Safety
    /// Unless `start` is null, a block of the requested order begins there. It is writable, and has no other
    /// owner.
    #[inline]
    pub(super) unsafe fn new(start: *mut u8) -> Option<Self> {
        NonNull::new(start).map(Self)
    }

    /// The block's address, for the target that frees it.
    #[inline]
    pub(super) fn into_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }
}

impl Held for Block {
    #[inline]
    fn start(&self) -> *mut u8 {
        self.0.as_ptr()
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

    #[inline]
    fn fill(&mut self) {
        // SAFETY: a block has at least one page. It belongs to the holder, and may be written to.
        unsafe { self.0.write_bytes(1, PAGE) };
    }
}

// SAFETY: a block is memory and nothing else; every target here lets any thread free it.
unsafe impl Send for Block {}
