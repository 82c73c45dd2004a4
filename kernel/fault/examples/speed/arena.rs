//! Provides real memory for the frames of an engine.

use std::ptr::NonNull;
use std::sync::Arc;

use pageset_core::{CpuId, Order, Pfn};
use pageset_fault::Memory;
use pageset_pageops::{BASE_PAGE_BYTES, Method, Page};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Memory of this process that serves as frames 0 to n - 1 of an engine.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    method: Method,
}

// SAFETY: the arena is only memory. The allocator decides which owner has a frame, and gives a frame to one
// owner at a time.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps memory for `frames` frames and makes the whole memory resident. Uses huge pages if the system has
    /// huge pages, like a kernel's direct map.
    fn new(frames: u64) -> Self {
        let bytes = frames as usize * BASE_PAGE_BYTES;
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address that the system chooses overlaps no other memory.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, prot, flags) }.expect("address space");
        // SAFETY: the range is the mapping from above, and the advice changes no contents.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        let start = NonNull::new(start.cast::<u8>()).expect("a mapping is not at zero");
        // SAFETY: the range is the mapping from above, and no other code has its address.
        unsafe { start.write_bytes(1, bytes) };
        Self { start, bytes, method: Method::chosen() }
    }

    fn page(&self, pfn: Pfn, frames: u32) -> NonNull<[u8]> {
        let (offset, len) = (pfn.0 as usize * BASE_PAGE_BYTES, frames as usize * BASE_PAGE_BYTES);
        assert!(offset + len <= self.bytes);
        // SAFETY: the assertion keeps the offset inside the mapping.
        let start = unsafe { self.start.add(offset) };
        NonNull::slice_from_raw_parts(start, len)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping of `new`, and no other value borrows the mapping any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Memory that all engines of a measurement use one after the other. If each engine had its own memory, the
/// memory would no longer be in the caches at the engine's turn.
#[derive(Clone)]
pub(crate) struct Arena(Arc<Mapping>);

impl Arena {
    /// Allocates memory for `frames` frames.
    pub(crate) fn new(frames: u64) -> Self {
        Self(Arc::new(Mapping::new(frames)))
    }
}

impl Memory for Arena {
    #[inline]
    fn clear(&self, _: CpuId, pfn: Pfn, order: Order, target: u32) {
        let mut page = self.0.page(pfn, order.frames());
        // SAFETY: only this task uses the frames, so no other reference to their memory exists.
        let page = unsafe { page.as_mut() };
        let cleared = self.0.method.clear(Page::from(page), Some(target as usize * BASE_PAGE_BYTES));
        cleared.expect("a block is a page");
    }

    #[inline]
    fn expect(&self, _: CpuId, pfn: Pfn) {
        pageset_pageops::prefetch(self.0.page(pfn, 1).cast().as_ptr());
    }

    fn copy(&self, _: CpuId, from: Pfn, to: Pfn) {
        let (from, mut to) = (self.0.page(from, 1), self.0.page(to, 1));
        // SAFETY: the engine lets no task write to a page while a task copies it.
        let from = unsafe { from.as_ref() };
        // SAFETY: the frame `to` was just allocated, so no other reference to its memory exists.
        let to = unsafe { to.as_mut() };
        self.0.method.copy(Page::from(to), from, None).expect("a frame is a page");
    }
}
