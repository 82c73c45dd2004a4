//! The kernel's own page allocation, by mapping and unmapping each block.

use super::block::Block;
use super::{Target, bytes};

/// How a block is mapped.
pub(crate) trait Way: Sync {
    /// The flags that this way adds to those of every anonymous mapping.
    const FLAGS: libc::c_int = 0;
    /// Whether blocks of 2 MiB and more are aligned and the kernel is asked for huge pages.
    const HUGE: bool = false;
}

/// Pages of 4 KiB, when they are touched.
#[derive(Debug)]
pub(super) struct Small;

/// Pages of 4 KiB, at once.
#[derive(Debug)]
pub(super) struct Populated;

/// Pages of 2 MiB, when they are touched.
#[derive(Debug)]
pub(crate) struct Huge;

impl Way for Small {}

impl Way for Populated {
    const FLAGS: libc::c_int = libc::MAP_POPULATE;
}

impl Way for Huge {
    const HUGE: bool = true;
}

/// `mmap` and `munmap` for each block.
#[derive(Debug)]
pub(crate) struct Mapping<W>(std::marker::PhantomData<W>);

/// Bytes of a huge page.
const HUGE: usize = 1 << 21;

impl<W: Way> Target for Mapping<W> {
    type Block = Block;
    const WHOLE_SPANS: bool = true;

    fn open(_: usize) -> Result<Self, String> {
        Ok(Self(std::marker::PhantomData))
    }

    fn version() -> Option<String> {
        Some(crate::machine::kernel())
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        let length = bytes(order);
        let start = if W::HUGE && length >= HUGE { map_huge(length)? } else { map(length, W::FLAGS)? };
        // SAFETY: the mapping is as long as the block and new.
        unsafe { Block::new(start) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, order: u32) {
        unmap(block.into_ptr(), bytes(order));
    }
}

/// Maps anonymous memory.
pub(super) fn map(length: usize, flags: libc::c_int) -> Option<*mut u8> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new anonymous mapping changes no memory that is in use.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start.cast())
}

/// Maps memory aligned to huge pages and asks for them.
fn map_huge(length: usize) -> Option<*mut u8> {
    let start = map(length + HUGE, 0)?;
    let before = start.align_offset(HUGE);
    // SAFETY: the mapping is longer than the block by one huge page, so the aligned address is inside.
    let aligned = unsafe { start.add(before) };
    if before > 0 {
        unmap(start, before);
    }
    let after = HUGE - before;
    if after > 0 {
        // SAFETY: what follows the block is the rest of the mapping.
        let end = unsafe { aligned.add(length) };
        unmap(end, after);
    }
    // SAFETY: the range was mapped above.
    let status = unsafe { libc::madvise(aligned.cast(), length, libc::MADV_HUGEPAGE) };
    (status == 0).then_some(aligned)
}

/// Unmaps what [`map`] mapped.
///
/// # Panics
/// If the kernel refuses, as it does when a process would have too many mappings.
fn unmap(start: *mut u8, length: usize) {
    // SAFETY: the range was mapped by this module and nobody uses it any more.
    let status = unsafe { libc::munmap(start.cast(), length) };
    assert_eq!(status, 0, "munmap: {}", std::io::Error::last_os_error());
}
