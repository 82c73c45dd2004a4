//! rpmalloc.

use super::block::{Block, PAGE};
use super::{Target, bytes};

/// `rpaligned_alloc` and `rpfree`, with every thread announced.
#[derive(Debug)]
pub(super) struct Rpmalloc;

impl Target for Rpmalloc {
    type Block = Block;

    fn open(_: usize) -> Result<Self, String> {
        // SAFETY: called once, before anything else of the library.
        match unsafe { rpmalloc_sys::rpmalloc_initialize() } {
            0 => Ok(Self),
            status => Err(format!("rpmalloc_initialize returned {status}")),
        }
    }

    fn attach(&self, _: usize) {
        // SAFETY: the library is initialized.
        unsafe { rpmalloc_sys::rpmalloc_thread_initialize() };
    }

    fn detach(&self, _: usize) {
        // SAFETY: the thread was announced and uses the library no more.
        unsafe { rpmalloc_sys::rpmalloc_thread_finalize() };
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        // SAFETY: the thread was announced and the alignment is a power of two.
        let start = unsafe { rpmalloc_sys::rpaligned_alloc(PAGE, bytes(order)) };
        // SAFETY: the allocation is as long as the block and belongs to the caller.
        unsafe { Block::new(start.cast()) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, _: u32) {
        // SAFETY: the block came from this allocator and no caller uses the block any more.
        unsafe { rpmalloc_sys::rpfree(block.into_ptr().cast()) };
    }
}
