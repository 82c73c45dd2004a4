//! The kernel's pages behind a free list. A freed block goes back to the kernel by `madvise`, and its
//! addresses are used again.

use pageset_bench::Spin;
use pageset_core::lock_api::Mutex;

use super::block::Block;
use super::kernel::map;
use super::{Target, bytes};

/// The advice for a freed block.
pub(super) trait Advice: Sync {
    /// The advice of `madvise`.
    const ADVICE: libc::c_int;
}

/// The kernel takes the pages at once.
#[derive(Debug)]
pub(super) struct DontNeed;

/// The kernel takes the pages when it is short of memory.
#[derive(Debug)]
pub(super) struct Free;

impl Advice for DontNeed {
    const ADVICE: libc::c_int = libc::MADV_DONTNEED;
}

impl Advice for Free {
    const ADVICE: libc::c_int = libc::MADV_FREE;
}

/// Orders that have a free list.
const ORDERS: usize = 16;

/// Free blocks of each order, the last freed on top.
#[derive(Debug)]
pub(super) struct Recycled<A> {
    free: Mutex<Spin, [Vec<Block>; ORDERS]>,
    advice: std::marker::PhantomData<A>,
}

impl<A: Advice> Target for Recycled<A> {
    type Block = Block;
    const WHOLE_SPANS: bool = true;

    fn open(_: usize) -> Result<Self, String> {
        Ok(Self { free: Mutex::new(std::array::from_fn(|_| Vec::new())), advice: std::marker::PhantomData })
    }

    fn version() -> Option<String> {
        Some(crate::machine::kernel())
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        let recycled = self.free.lock()[order as usize].pop();
        recycled.or_else(|| {
            let start = map(bytes(order), 0)?;
            // SAFETY: the mapping is as long as the block and new.
            unsafe { Block::new(start) }
        })
    }

    #[inline]
    fn free(&self, _: usize, block: Block, order: u32) {
        let start = block.into_ptr();
        // SAFETY: the block was mapped with this length and nobody uses it any more.
        let status = unsafe { libc::madvise(start.cast(), bytes(order), A::ADVICE) };
        assert_eq!(status, 0, "madvise: {}", std::io::Error::last_os_error());
        // SAFETY: the block stays mapped and has no other holder.
        let block = unsafe { Block::new(start) };
        self.free.lock()[order as usize].extend(block);
    }
}
