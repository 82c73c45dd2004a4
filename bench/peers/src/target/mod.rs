//! The allocators.
//!
//! A target hands out blocks of 4 KiB times a power of two. `list` names them all; each has a file of its
//! own:
//!
//! - mallocs, asked for page alignment: `glibc`, `mimalloc2`, `mimalloc3`, `jemalloc`, `snmalloc`,
//!   `rpmalloc`, `tcmalloc`, `gperftools`, `rusty_alloc`;
//! - a heap of pages in memory of its own: `buddy_alloc`;
//! - allocators of page numbers, over an [`arena`]: `buddy_system`, `bitmap`, `free_list`, `frame_alloc`;
//! - the kernel: `kernel`, `recycled`;
//! - ours: `pageset`, and `pageset_blocks` and `pageset_core` alone; `jemalloc_on_pool`, which is theirs on
//!   ours;
//! - none: `floor`, what rows cost by themselves.
//!
//! Rows hold what `block` says and hand it to another thread in a `slot`.

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
/// A thread calls [`attach`](Self::attach) before the first and [`detach`](Self::detach) after the last
/// operation, and says as which CPU it runs.
pub(crate) trait Target: Sync + Sized {
    /// What a user of this allocator holds: a pointer, or what the allocator has instead.
    type Block: Held;

    /// Whether a user of this allocator takes 128 MiB as one block and not page by page.
    const WHOLE_SPANS: bool = false;

    /// Gets ready for `pages` pages in this process; called once. The error says why the target is not there.
    fn open(pages: usize) -> Result<Self, String>;

    /// The version of the library that is loaded, where only the running process knows it.
    fn version() -> Option<String> {
        None
    }

    /// The calling thread begins.
    fn attach(&self, _cpu: usize) {}

    /// The calling thread ends.
    fn detach(&self, _cpu: usize) {}

    /// A block of `4096 << order` bytes, whatever is in it.
    fn alloc(&self, cpu: usize, order: u32) -> Option<Self::Block>;

    /// Takes back a block of this order.
    fn free(&self, cpu: usize, block: Self::Block, order: u32);

    /// A block of so many pages. An allocator that has powers of two only rounds up.
    fn alloc_pages(&self, cpu: usize, pages: usize) -> Option<Self::Block> {
        self.alloc(cpu, order_of(pages))
    }

    /// Takes back a block of so many pages.
    fn free_pages(&self, cpu: usize, block: Self::Block, pages: usize) {
        self.free(cpu, block, order_of(pages));
    }
}

/// The order of the smallest block that has so many pages.
fn order_of(pages: usize) -> u32 {
    pages.next_power_of_two().trailing_zeros()
}

/// Bytes of a block.
#[inline]
pub(crate) const fn bytes(order: u32) -> usize {
    PAGE << order
}
