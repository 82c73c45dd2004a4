//! The one edge to `pageset-core`: every block that passes between the pool and the core's page sets and free lists
//! passes here.
//!
//! The pool names frames by 32 bits from its start; so does the core, by 64. The core is told the CPU that runs the
//! thread, or one of those it knows.

use std::ops::Range;

pub(crate) use pageset_core::AllocError as CoreError;
use pageset_core::{BlockInfo, CpuId, FreeError, FreeTraits, Order, Pfn, Request, RequestTraits};

use crate::sys::cpu;
pub(crate) use crate::sys::tables::Core;

/// A request for a block. All memory is of one type, so that nothing is stolen from anybody.
fn request(order: Order) -> Request {
    Request::new(order).movable()
}

fn pfn(frame: u32) -> Pfn {
    Pfn(u64::from(frame))
}

impl Core {
    /// Allocates a block: its first frame. `None` if there is none.
    pub(crate) fn alloc(&self, order: Order) -> Option<u32> {
        let block = self.allocator().alloc(self.cpu(), &request(order));
        block.ok().map(|pfn| pfn.0 as u32)
    }

    /// Allocates the block at this place, though it be the last one that is free.
    pub(crate) fn alloc_at(&self, frame: u32, order: Order) -> Result<(), CoreError> {
        let request = request(order).with(RequestTraits::NO_WATERMARKS);
        self.allocator().alloc_at(self.cpu(), pfn(frame), &request)
    }

    /// Frees a block.
    pub(crate) fn free(&self, frame: u32, order: Order) -> Result<(), FreeError> {
        self.allocator().free(self.cpu(), pfn(frame), order)
    }

    /// Frees frames, whatever blocks they are or are parts of. Only under the depot's lock, which keeps others from
    /// cutting the same block meanwhile.
    pub(crate) fn free_range(&self, frames: Range<u32>) -> Result<(), FreeError> {
        self.allocator().free_range(self.cpu(), u64::from(frames.start)..u64::from(frames.end))
    }

    /// Puts a block that nobody has on the free lists, past the page sets.
    pub(crate) fn release(&self, frame: u32, order: Order) {
        let outcome = self.allocator().free_with(self.cpu(), pfn(frame), order, FreeTraits::BYPASS_PCP);
        debug_assert_eq!(outcome, Ok(()), "a block that was taken out is ours to put back");
    }

    /// As [`release`](Self::release), for frames, whatever blocks they are parts of: whoever has the others keeps them.
    pub(crate) fn release_range(&self, frames: Range<u32>) {
        let outcome = self.free_range(frames);
        debug_assert_eq!(outcome, Ok(()), "the core takes frames that nobody has for allocated");
    }

    /// Whether somebody has this block, of this order.
    pub(crate) fn is_allocated(&self, frame: u32, order: Order) -> bool {
        self.allocator().is_allocated(pfn(frame), order)
    }

    /// The block with this frame, as far as one can see without a lock.
    pub(crate) fn block_of(&self, frame: u32) -> Option<BlockInfo> {
        self.allocator().block_of(pfn(frame))
    }

    /// Empties the page sets of all CPUs onto the free lists.
    pub(crate) fn drain(&self) {
        let _ = self.allocator().drain_all(self.cpu());
    }

    /// Lets the page sets of all CPUs decay as their policy says.
    pub(crate) fn tick(&self) {
        for cpu in 0..self.allocator().cpus() as u32 {
            let _ = self.allocator().tick(CpuId(cpu));
        }
    }

    fn cpu(&self) -> CpuId {
        CpuId((cpu::current() % self.allocator().cpus()) as u32)
    }
}
