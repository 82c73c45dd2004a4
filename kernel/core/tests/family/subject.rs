//! The interface through which the model tests an allocator: `FrameAllocator`, and some more methods.

use pageset_core::{CpuId, FrameAllocator, FreeError, FreeTraits, MigrateType, Order, Pfn};

use super::model::Model;
use super::operation::Operation;

/// An allocator that is tested against the model.
pub(crate) trait Subject {
    type Allocator: FrameAllocator;

    fn allocator(&self) -> &Self::Allocator;

    fn promises(&self) -> Promises;

    /// Frees a block. An allocator that has no `FreeTraits` ignores `traits`.
    fn free(&mut self, cpu: CpuId, pfn: Pfn, order: Order, traits: FreeTraits) -> Result<(), FreeError>;

    /// Whether pageblocks can have this type.
    fn has_type(&self, migratetype: MigrateType) -> bool;

    /// Number of free frames of a zone.
    fn free_in(&self, zone: usize) -> u64;

    /// The block that goes out of service with a free frame, if it is larger than the frame.
    fn goes_with(&self, pfn: Pfn) -> Option<(Pfn, Order)>;

    /// Checks that a drained CPU keeps no memory for itself, as far as the allocator shows it.
    fn check_drained(&self, cpu: CpuId);

    /// Runs an operation that is not in `FrameAllocator`.
    fn own(&self, model: &Model, operation: &Operation);

    /// Calls each query with a frame, a zone and a CPU that may not exist.
    fn look(&self, model: &Model, cpu: u32, zone: usize, pfn: u64);

    /// Checks everything visible except the census.
    fn check(&mut self, model: &Model);

    /// Checks the state once all memory is free.
    fn finish(&self, model: &Model);
}

/// Promises that some allocators make and others do not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promises {
    /// The allocator reports every wrong free. If it does not make this promise, programs free no block
    /// twice, but still free wrong ranges.
    pub(crate) tells_double_frees: bool,
    /// A request that ignores watermarks finds any free block of its order, except in pageblocks that have or
    /// had holes. Without this promise, such a request still finds a free page, unless all free pages are in
    /// contiguous areas.
    pub(crate) finds_blocks: bool,
    /// The allocator hands out no frame of a pageblock that is out of service. Without this promise, it may
    /// hand out frames that were in page sets.
    pub(crate) keeps_isolated: bool,
}
