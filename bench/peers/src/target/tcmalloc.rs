//! Google's tcmalloc, by the crate `libtcmalloc-sys`.

use super::block::{Block, PAGE};
use super::{Target, bytes};

/// `operator new` and the sized `operator delete`, both aligned.
#[derive(Debug)]
pub(super) struct Tcmalloc;

impl Target for Tcmalloc {
    type Block = Block;

    fn open(_: usize) -> Result<Self, String> {
        Ok(Self)
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        // SAFETY: the alignment is a power of two.
        let start = unsafe { libtcmalloc_sys::BridgeTCMallocInternalNewAlignedNothrow(bytes(order), PAGE) };
        // SAFETY: the allocation is as long as the block and belongs to the caller.
        unsafe { Block::new(start.cast()) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, order: u32) {
        let start = block.into_ptr().cast();
        // SAFETY: the block was allocated with this size and alignment, and no caller uses the block any
        // more.
        unsafe { libtcmalloc_sys::TCMallocInternalDeleteSizedAligned(start, bytes(order), PAGE) };
    }
}
