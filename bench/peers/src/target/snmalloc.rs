//! snmalloc.

use super::block::{Block, PAGE};
use super::{Target, bytes};

/// The functions it has for Rust.
#[derive(Debug)]
pub(super) struct Snmalloc;

impl Target for Snmalloc {
    type Block = Block;

    fn open(_: usize) -> Result<Self, String> {
        Ok(Self)
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        // SAFETY: the alignment is a power of two.
        let start = unsafe { snmalloc_sys::sn_rust_alloc(PAGE, bytes(order)) };
        // SAFETY: the allocation is as long as the block and belongs to the caller.
        unsafe { Block::new(start.cast()) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, order: u32) {
        // SAFETY: the block came from `sn_rust_alloc` with this alignment and size, and nobody holds it any
        // more.
        unsafe { snmalloc_sys::sn_rust_dealloc(block.into_ptr().cast(), PAGE, bytes(order)) };
    }
}
