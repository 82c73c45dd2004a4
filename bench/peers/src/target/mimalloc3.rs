//! mimalloc v3, as the crate `libmimalloc-sys` builds it.

use super::block::{Block, PAGE};
use super::{Target, bytes};

/// `mi_malloc_aligned` and `mi_free`.
#[derive(Debug)]
pub(super) struct Mimalloc3;

impl Target for Mimalloc3 {
    type Block = Block;

    fn open(_: usize) -> Result<Self, String> {
        Ok(Self)
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        // SAFETY: the alignment is a power of two.
        let start = unsafe { libmimalloc_sys::mi_malloc_aligned(bytes(order), PAGE) };
        // SAFETY: the allocation is as long as the block and belongs to the caller.
        unsafe { Block::new(start.cast()) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, _: u32) {
        // SAFETY: the block came from this allocator and no caller uses the block any more.
        unsafe { libmimalloc_sys::mi_free(block.into_ptr().cast()) };
    }
}
