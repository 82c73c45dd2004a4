//! The allocators.
//!
//! A target hands out blocks of 4 KiB times a power of two. `list` has all of them; each has a file of its
//! own:
//!
//! - Mallocs, which are asked for page alignment: `glibc`, `mimalloc2`, `mimalloc3`, `jemalloc`, `snmalloc`,
//!   `rpmalloc`, `tcmalloc`, `gperftools`, `rusty_alloc`.
//! - A heap of pages in memory of its own: `buddy_alloc`.
//! - Allocators of page numbers, over an [`arena`]: `buddy_system`, `bitmap`, `free_list`, `frame_alloc`.
//! - The kernel: `kernel`, `recycled`.
//! - This project's allocators: `pageset`, and its parts `pageset_blocks` and `pageset_core` alone.
//!   `jemalloc_on_pool` is jemalloc over `pageset`.
//! - No allocator: `floor`, the cost of the rows themselves.
//!
//! Rows hold a `block` and pass it to another thread in a `slot`.

mod arena;
mod bitmap;
mod block;
mod buddy_alloc;
mod buddy_system;
mod floor;
mod frame_alloc;
mod free_list;
mod glibc;
mod gperftools;
mod jemalloc;
mod jemalloc_on_pool;
mod kernel;
mod list;
mod mimalloc2;
mod mimalloc3;
mod pageset;
mod pageset_blocks;
mod pageset_core;
mod recycled;
mod rpmalloc;
mod rusty_alloc;
mod slot;
mod snmalloc;
mod tcmalloc;
mod zone;

pub(crate) use block::{Held, Line, PAGE};
pub(crate) use kernel::{Huge, Mapping};
#[cfg(test)]
pub(crate) use list::TARGETS;
pub(crate) use list::{Side, TargetInfo, Visit, selected, visit};
pub(crate) use slot::Slot;

/// An allocator of pages.
///
/// A thread calls [`attach`](Self::attach) before its first operation and [`detach`](Self::detach) after its
/// last, and names the CPU that it runs on.
pub(crate) trait Target: Sync + Sized {
    /// The handle of a block: a pointer, or the allocator's own type.
    type Block: Held;

    /// Whether a user of this allocator takes 128 MiB as one block instead of page by page.
    const WHOLE_SPANS: bool = false;

    /// Prepares for `pages` pages in this process; called once. An error says why the target is unavailable.
    fn open(pages: usize) -> Result<Self, String>;

    /// Prepares as `open` does, for a process that lets the kernel pin [`memory`](Self::memory). The target
    /// must then give none of that memory back to the kernel.
    fn open_pinned(pages: usize) -> Result<Self, String> {
        Self::open(pages)
    }

    /// The memory that has all blocks, and stays mapped until the process ends. `None` if there is no such
    /// memory, as in a malloc.
    fn memory(&self) -> Option<*mut [u8]> {
        None
    }

    /// The version of the loaded library, if only the running process knows it.
    fn version() -> Option<String> {
        None
    }

    /// Announces the calling thread.
    fn attach(&self, _cpu: usize) {}

    /// Ends the work of the calling thread.
    fn detach(&self, _cpu: usize) {}

    /// Allocates a block of `4096 << order` bytes, with any content.
    fn alloc(&self, cpu: usize, order: u32) -> Option<Self::Block>;

    /// Frees a block of this order.
    fn free(&self, cpu: usize, block: Self::Block, order: u32);

    /// Allocates a block of this many pages. An allocator of powers of two rounds up.
    fn alloc_pages(&self, cpu: usize, pages: usize) -> Option<Self::Block> {
        self.alloc(cpu, order_of(pages))
    }

    /// Frees a block of this many pages.
    fn free_pages(&self, cpu: usize, block: Self::Block, pages: usize) {
        self.free(cpu, block, order_of(pages));
    }
}

/// The order of the smallest block with this many pages.
fn order_of(pages: usize) -> u32 {
    pages.next_power_of_two().trailing_zeros()
}

/// Bytes of a block.
#[inline]
pub(crate) const fn bytes(order: u32) -> usize {
    PAGE << order
}
