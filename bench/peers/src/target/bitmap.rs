//! `bitmap-allocator`: a tree of bitmaps, as rCore and ArceOS use it for frames, under one spin lock.

use bitmap_allocator::{BitAlloc as _, BitAlloc1M};
use pageset_bench::Spin;
use pageset_core::lock_api::Mutex;

use super::Target;
use super::arena::Arena;
use super::block::Block;

/// A bit for each page. It is static because it is too large to be built on a stack.
static BITS: Mutex<Spin, BitAlloc1M> = Mutex::new(<BitAlloc1M as bitmap_allocator::BitAlloc>::DEFAULT);

/// Bits for the arena's pages.
#[derive(Debug)]
pub(super) struct Bitmap {
    arena: Arena,
}

impl Target for Bitmap {
    type Block = Block;

    fn open(pages: usize) -> Result<Self, String> {
        if pages > BitAlloc1M::CAP {
            return Err(format!("{pages} pages are more than its {} bits", BitAlloc1M::CAP));
        }
        BITS.lock().insert(0..pages);
        Ok(Self { arena: Arena::new(pages)? })
    }

    fn memory(&self) -> Option<*mut [u8]> {
        Some(self.arena.memory())
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        let mut bits = BITS.lock();
        let page = match order {
            0 => bits.alloc(),
            _ => bits.alloc_contiguous(None, 1 << order, order as usize),
        }?;
        drop(bits);
        // SAFETY: the bitmap knows the arena's pages and hands each out once.
        unsafe { self.arena.block(page) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, order: u32) {
        let page = self.arena.page(block);
        let mut bits = BITS.lock();
        let freed = match order {
            0 => bits.dealloc(page),
            _ => bits.dealloc_contiguous(page, 1 << order),
        };
        debug_assert!(freed, "page {page} was allocated");
    }
}
