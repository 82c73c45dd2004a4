//! `buddy_system_allocator`: the frame allocator of rCore and its descendants, under one spin lock.

use buddy_system_allocator::FrameAllocator;
use pageset_bench::Spin;
use pageset_core::lock_api::Mutex;

use super::Target;
use super::arena::Arena;
use super::block::Block;

/// Orders 0 to 10, as in the kernel.
type Frames = FrameAllocator<11>;

/// A buddy system of page numbers in ordered sets.
pub(super) struct BuddySystem {
    arena: Arena,
    frames: Mutex<Spin, Frames>,
}

impl Target for BuddySystem {
    type Block = Block;

    fn open(pages: usize) -> Result<Self, String> {
        let mut frames = Frames::new();
        frames.add_frame(0, pages);
        Ok(Self { arena: Arena::new(pages)?, frames: Mutex::new(frames) })
    }

    fn memory(&self) -> Option<*mut [u8]> {
        Some(self.arena.memory())
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        let page = self.frames.lock().alloc(1 << order)?;
        // SAFETY: the frame allocator knows the arena's pages and hands each out once.
        unsafe { self.arena.block(page) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, order: u32) {
        let page = self.arena.page(block);
        self.frames.lock().dealloc(page, 1 << order);
    }
}
