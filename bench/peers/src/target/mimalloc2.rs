//! mimalloc v2. Its source comes with the crate of v3; `build.rs` builds it under different names.

use std::ffi::c_void;

use super::block::{Block, PAGE};
use super::{Target, bytes};

unsafe extern "C" {
    /// `mi_malloc_aligned` of v2.
    fn peers_mimalloc2_alloc(size: usize, alignment: usize) -> *mut c_void;
    /// `mi_free` of v2.
    fn peers_mimalloc2_free(start: *mut c_void);
}

/// `mi_malloc_aligned` and `mi_free`.
#[derive(Debug)]
pub(super) struct Mimalloc2;

impl Target for Mimalloc2 {
    type Block = Block;

    fn open(_: usize) -> Result<Self, String> {
        Ok(Self)
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        // SAFETY: the alignment is a power of two.
        let start = unsafe { peers_mimalloc2_alloc(bytes(order), PAGE) };
        // SAFETY: the allocation is as long as the block and belongs to the caller.
        unsafe { Block::new(start.cast()) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, _: u32) {
        // SAFETY: the block came from this allocator and no caller uses the block any more.
        unsafe { peers_mimalloc2_free(block.into_ptr().cast()) };
    }
}
