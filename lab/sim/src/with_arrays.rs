//! This project's own allocator together with the arrays of all CPUs. The arrays borrow the allocator.
#![expect(unsafe_code, reason = "one field borrows from another field of the same value")]

use std::rc::Rc;

use pageset_blocks::{BlockAllocator, BlockCounters, EveryCpu};
use pageset_core::{ConfigError, FrameAllocator};

/// This project's allocator, and each CPU's array of free blocks above the allocator.
///
/// # Invariants
/// The arrays are dropped before the allocator, because fields are dropped in the order of their declaration.
#[derive(Debug)]
pub(crate) struct WithArrays {
    /// The arrays. The type of `arrays` says that the arrays borrow the allocator for `'static`, but the
    /// allocator lives only as long as the `WithArrays`. So the methods never lend an array for longer than
    /// `self` is borrowed.
    arrays: EveryCpu<'static>,
    _allocator: Rc<BlockAllocator<'static>>,
}

impl WithArrays {
    pub(crate) fn new(allocator: BlockAllocator<'static>) -> Result<Self, ConfigError> {
        let allocator = Rc::new(allocator);
        // SAFETY: the allocator in the `Rc` does not move, and no code makes a mutable reference to the
        // allocator. By the invariant, the allocator is dropped after the arrays that borrow it.
        let lent = unsafe { &*Rc::as_ptr(&allocator) };
        Ok(Self { arrays: EveryCpu::new(lent)?, _allocator: allocator })
    }

    pub(crate) fn frames(&self) -> &dyn FrameAllocator {
        &self.arrays
    }

    pub(crate) fn drain_all(&self) {
        self.arrays.drain_all();
    }

    pub(crate) fn counters(&self) -> BlockCounters {
        self.arrays.below().counters()
    }
}
