//! The malloc of the C library.

use super::block::{Block, PAGE};
use super::{Target, bytes};

/// `aligned_alloc` and `free`.
#[derive(Debug)]
pub(super) struct Glibc;

impl Target for Glibc {
    type Block = Block;

    fn open(_: usize) -> Result<Self, String> {
        Ok(Self)
    }

    fn version() -> Option<String> {
        // SAFETY: the C library is always there.
        let version = unsafe { libc::gnu_get_libc_version() };
        // SAFETY: the function returns a static string.
        Some(unsafe { std::ffi::CStr::from_ptr(version) }.to_string_lossy().into_owned())
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        // SAFETY: the alignment is a power of two and divides the size.
        let start = unsafe { libc::aligned_alloc(PAGE, bytes(order)) };
        // SAFETY: the allocation is as long as the block and belongs to the caller.
        unsafe { Block::new(start.cast()) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, _: u32) {
        // SAFETY: the block came from this allocator and no caller uses the block any more.
        unsafe { libc::free(block.into_ptr().cast()) };
    }
}
