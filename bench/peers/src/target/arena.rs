//! Address space for targets that hand out page numbers.

use super::block::{Block, PAGE};

/// The alignment of an arena, 4 MiB. Its largest blocks need it.
const ALIGN: usize = 1 << 22;

/// Reserved address space whose pages appear when they are touched. It stays until the process ends.
#[derive(Debug)]
pub(super) struct Arena {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: an arena only computes addresses; who may use the memory behind them is up to the target.
unsafe impl Sync for Arena {}

impl Arena {
    /// Reserves address space for `pages` pages.
    pub(super) fn new(pages: usize) -> Result<Self, String> {
        let bytes = pages * PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping changes no memory that is in use.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), bytes + ALIGN, access, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(format!("no address space: {}", std::io::Error::last_os_error()));
        }
        let offset = map.cast::<u8>().align_offset(ALIGN);
        // SAFETY: the mapping is longer than the arena by one alignment, so the aligned address is inside.
        let start = unsafe { map.cast::<u8>().add(offset) };
        start.expose_provenance();
        Ok(Self { start, bytes })
    }

    /// Address of its first page.
    pub(super) fn start(&self) -> usize {
        self.start.addr()
    }

    /// The whole memory of the arena.
    pub(super) fn memory(&self) -> *mut [u8] {
        std::ptr::slice_from_raw_parts_mut(self.start, self.bytes)
    }

    /// The block that begins with this page.
    ///
    /// # Safety
    /// The block is inside the arena, and has no other owner.
    #[inline]
    pub(super) unsafe fn block(&self, page: usize) -> Option<Block> {
        // SAFETY: the caller says that the page is inside.
        let start = unsafe { self.start.add(page * PAGE) };
        // SAFETY: the arena may be written to, and the caller says that the block is nobody else's.
        unsafe { Block::new(start) }
    }

    /// The number of the page a block begins with.
    #[inline]
    pub(super) fn page(&self, block: Block) -> usize {
        (block.into_ptr().addr() - self.start.addr()) / PAGE
    }
}
