//! `buddy-alloc`: the heap of MIT's teaching kernel xv6, under one spin lock. Its bookkeeping lies in the
//! memory that it hands out.

use buddy_alloc::buddy_alloc::{BuddyAlloc, BuddyAllocParam};
use pageset_bench::Spin;
use pageset_core::lock_api::Mutex;

use super::arena::Arena;
use super::block::{Block, PAGE};
use super::{Target, bytes};

/// A buddy system with free lists in the free blocks.
pub(super) struct Buddies {
    arena: Arena,
    heap: Mutex<Spin, Heap>,
}

struct Heap(BuddyAlloc);

// SAFETY: it has pointers into an arena that lives as long as the process, and no thread keeps anything of
// it.
unsafe impl Send for Heap {}

impl Target for Buddies {
    type Block = Block;

    fn open(pages: usize) -> Result<Self, String> {
        let arena = Arena::new(pages)?;
        let param =
            BuddyAllocParam::new(std::ptr::with_exposed_provenance(arena.start()), pages * PAGE, PAGE);
        // SAFETY: the arena is writable, as long as this, and nobody else's.
        let heap = unsafe { BuddyAlloc::new(param) };
        Ok(Self { arena, heap: Mutex::new(Heap(heap)) })
    }

    fn memory(&self) -> Option<*mut [u8]> {
        Some(self.arena.memory())
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        let start = self.heap.lock().0.malloc(bytes(order));
        // SAFETY: the heap gives so many bytes to one caller, or a null pointer.
        unsafe { Block::new(start) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, _: u32) {
        self.heap.lock().0.free(block.into_ptr());
    }
}
