//! jemalloc.

use super::block::{Block, PAGE};
use super::{Target, bytes};

/// `mallocx` and `sdallocx` with page alignment.
#[derive(Debug)]
pub(super) struct Jemalloc;

const FLAGS: i32 = tikv_jemalloc_sys::MALLOCX_ALIGN(PAGE);

impl Target for Jemalloc {
    type Block = Block;

    fn open(_: usize) -> Result<Self, String> {
        Ok(Self)
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        // SAFETY: the size is not 0 and the flags hold a power of two.
        let start = unsafe { tikv_jemalloc_sys::mallocx(bytes(order), FLAGS) };
        // SAFETY: the allocation is as long as the block and belongs to the caller.
        unsafe { Block::new(start.cast()) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, order: u32) {
        // SAFETY: the block came from `mallocx` with this size and these flags, and no caller uses it any
        // more.
        unsafe { tikv_jemalloc_sys::sdallocx(block.into_ptr().cast(), bytes(order), FLAGS) };
    }
}
