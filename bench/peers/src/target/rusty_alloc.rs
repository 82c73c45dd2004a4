//! rusty_alloc: mimalloc's design in Rust.

use rusty_alloc::alloc;

use super::block::{Block, PAGE};
use super::{Target, bytes};

/// `malloc_aligned` and `free`.
#[derive(Debug)]
pub(super) struct RustyAlloc;

impl Target for RustyAlloc {
    type Block = Block;

    fn open(_: usize) -> Result<Self, String> {
        Ok(Self)
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        let start = alloc::malloc_aligned(bytes(order), PAGE);
        // SAFETY: the allocation is as long as the block and belongs to the caller.
        unsafe { Block::new(start) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, _: u32) {
        // SAFETY: the block came from this allocator and no caller uses the block any more.
        unsafe { alloc::free(block.into_ptr()) };
    }
}
