//! Our own allocator with the arrays of all CPUs, which borrow it.
#![expect(unsafe_code, reason = "a value that borrows from a value beside it")]

use std::rc::Rc;

use pageset_blocks::{BlockAllocator, BlockCounters, EveryCpu};
use pageset_core::{ConfigError, FrameAllocator};

/// The allocator of blocks, and the array of blocks of each CPU on top of it.
///
/// # Invariants
/// The arrays go first: fields are dropped in this order.
#[derive(Debug)]
pub(crate) struct WithArrays {
    /// Only as long as this value lives: what the methods give says so.
    arrays: EveryCpu<'static>,
    _allocator: Rc<BlockAllocator<'static>>,
}

impl WithArrays {
    pub(crate) fn new(allocator: BlockAllocator<'static>) -> Result<Self, ConfigError> {
        let allocator = Rc::new(allocator);
        // SAFETY: what an `Rc` points to stays where it is, nobody gets it mutably, and by the invariant it
        // goes after the arrays.
        let lent = unsafe { &*Rc::as_ptr(&allocator) };
        Ok(Self { arrays: EveryCpu::new(lent)?, _allocator: allocator })
    }

    pub(crate) fn frames(&self) -> &dyn FrameAllocator {
        &self.arrays
    }

    pub(crate) fn counters(&self) -> BlockCounters {
        self.arrays.below().counters()
    }
}
