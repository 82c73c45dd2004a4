//! `free-list`: Hermit's sorted list of free ranges, under one spin lock.

use free_list::{FreeList, PageLayout, PageRange};
use pageset_bench::Spin;
use pageset_core::lock_api::Mutex;

use super::arena::Arena;
use super::block::{Block, PAGE};
use super::{Target, bytes};

/// Ranges that it keeps before it takes memory from the heap, as in Hermit.
const INLINE: usize = 16;

/// A list of free ranges of addresses.
#[derive(Debug)]
pub(super) struct Ranges {
    arena: Arena,
    list: Mutex<Spin, FreeList<INLINE>>,
}

impl Target for Ranges {
    type Block = Block;

    fn open(pages: usize) -> Result<Self, String> {
        let arena = Arena::new(pages)?;
        let mut list = FreeList::new();
        let range =
            PageRange::from_start_len(arena.start(), pages * PAGE).map_err(|error| error.to_string())?;
        // SAFETY: the arena's addresses are nobody else's.
        unsafe { list.deallocate(range) }.map_err(|error| error.to_string())?;
        Ok(Self { arena, list: Mutex::new(list) })
    }

    fn memory(&self) -> Option<*mut [u8]> {
        Some(self.arena.memory())
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        let layout = PageLayout::from_size_align(bytes(order), bytes(order)).ok()?;
        let range = self.list.lock().allocate(layout).ok()?;
        // SAFETY: the list knows the arena's pages and hands each out once.
        unsafe { self.arena.block((range.start() - self.arena.start()) / PAGE) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, order: u32) {
        let start = self.arena.start() + self.arena.page(block) * PAGE;
        let range = PageRange::from_start_len(start, bytes(order)).expect("a block is a range of pages");
        // SAFETY: the block came from this list and no caller uses the block any more.
        unsafe { self.list.lock().deallocate(range) }.expect("the list takes back what it gave");
    }
}
