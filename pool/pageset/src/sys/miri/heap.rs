//! Under miri, the memory of pools and of tables is zeroed memory of the heap.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use crate::Backing;
use crate::sys::{Change, MapError, MapStep, POOL_ALIGN};

/// Memory of the heap, or a region that the caller keeps.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    is_ours: bool,
}

// SAFETY: a mapping is an address and a length. The owners of its pages decide how threads use the memory.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`, and no method changes the mapping through a shared reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(crate) fn new(bytes: usize, _: Backing) -> Result<Self, MapError> {
        let none = || MapStep::Reserve.refused(io::ErrorKind::OutOfMemory);
        let layout = layout(bytes).ok_or_else(none)?;
        // SAFETY: the layout's size is not zero, because neither the builder nor a table asks for 0 bytes.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or_else(none)?;
        Ok(Self { start, bytes, is_ours: true })
    }

    pub(crate) fn lent(start: NonNull<u8>, bytes: usize) -> Self {
        Self { start, bytes, is_ours: false }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Whether dropping this value frees the memory.
    pub(crate) fn is_ours(&self) -> bool {
        self.is_ours
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Does nothing: without a kernel, there is no change to undo.
    pub(in crate::sys) fn note(&mut self, _: Change) {}

    pub(crate) fn memfd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.is_ours {
            let layout = layout(self.bytes).expect("it was allocated");
            // SAFETY: `new` allocated the memory with this layout, and no page of it has an owner any more.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, POOL_ALIGN).ok()
}
