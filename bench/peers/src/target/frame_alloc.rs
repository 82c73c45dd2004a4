//! `frame-alloc`: a lock-free buddy system on bitmaps with magazines per CPU and a depot between them.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use frame_alloc::{
    CpuId, DepotAllocator, PageSize, PhysicalAllocator as _, Provenance, RegionInit as _,
    SummaryBuddyAllocator,
};

use super::Target;
use super::arena::Arena;
use super::block::{Block, PAGE};

thread_local! {
    /// The CPU of the calling thread.
    static CPU: Cell<usize> = const { Cell::new(0) };
}

/// Tells the allocator the CPU that the thread was attached to.
struct Attached;

impl CpuId for Attached {
    #[inline]
    fn current_cpu() -> usize {
        CPU.get()
    }
}

/// Addresses of the arena are addresses of this process.
struct SameAddress;

// SAFETY: the arena exposed its provenance when it was mapped, and it is never unmapped.
unsafe impl Provenance for SameAddress {
    unsafe fn create(phys: usize) -> NonNull<u8> {
        let start = std::ptr::with_exposed_provenance_mut(phys);
        // SAFETY: no page of the arena is at address 0.
        unsafe { NonNull::new_unchecked(start) }
    }

    unsafe fn destroy<T>(pointer: NonNull<T>) -> usize {
        pointer.addr().get()
    }
}

/// The allocator for orders 0 to 10 and 64 CPUs, with magazines as in the documentation of the crate.
type Frames = DepotAllocator<SummaryBuddyAllocator<11, SameAddress>, Attached, 64>;

const BASE: PageSize = PageSize::from_log2(12);

static FRAMES: Frames = DepotAllocator::new(BASE, SummaryBuddyAllocator::new(BASE));

/// The static allocator over an arena.
#[derive(Debug)]
pub(super) struct FrameAlloc {
    arena: Arena,
}

impl Target for FrameAlloc {
    type Block = Block;

    fn open(pages: usize) -> Result<Self, String> {
        let arena = Arena::new(pages)?;
        // SAFETY: the arena is nobody else's, and no other thread knows the allocator yet.
        let result = unsafe { FRAMES.try_init_region(arena.start(), pages * PAGE) };
        result.map_err(|error| format!("{error}"))?;
        Ok(Self { arena })
    }

    fn memory(&self) -> Option<*mut [u8]> {
        Some(self.arena.memory())
    }

    fn attach(&self, cpu: usize) {
        CPU.set(cpu);
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        let count = NonZeroUsize::new(1 << order)?;
        let address = FRAMES.allocate_physical(BASE, count).ok()?;
        // SAFETY: the allocator knows the arena's pages and hands each out once.
        unsafe { self.arena.block((address - self.arena.start()) / PAGE) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, order: u32) {
        let Some(count) = NonZeroUsize::new(1 << order) else { return };
        let address = block.into_ptr().addr();
        // SAFETY: the block came from this allocator with this count and no caller uses the block any more.
        unsafe { FRAMES.deallocate_physical(BASE, count, address) };
    }
}
