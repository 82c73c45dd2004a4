//! The model's view of an allocator beyond the family's trait.

use pageset_core::{CpuId, FrameAllocator, FreeError, FreeTraits, MigrateType, Order, Pfn};

use super::model::Model;
use super::operation::Operation;

/// An allocator that the model judges.
pub(crate) trait Subject {
    type Allocator: FrameAllocator;

    fn allocator(&self) -> &Self::Allocator;

    fn promises(&self) -> Promises;

    /// Frees as the family does. An allocator without such traits ignores them.
    fn free(&mut self, cpu: CpuId, pfn: Pfn, order: Order, traits: FreeTraits) -> Result<(), FreeError>;

    /// Whether pageblocks can become ones of this type.
    fn has_type(&self, migratetype: MigrateType) -> bool;

    /// Frames of a zone that are free.
    fn free_in(&self, zone: usize) -> u64;

    /// The block that goes out of service with a free frame, if it is larger than the frame.
    fn goes_with(&self, pfn: Pfn) -> Option<(Pfn, Order)>;

    /// Checks that a drained CPU keeps nothing back, as far as this is visible.
    fn check_drained(&self, cpu: CpuId);

    /// Runs an operation that the family does not have.
    fn own(&self, model: &Model, operation: &Operation);

    /// Calls each query on a frame, a zone and a CPU, which may not exist.
    fn look(&self, model: &Model, cpu: u32, zone: usize, pfn: u64);

    /// Checks everything visible except the census.
    fn check(&mut self, model: &Model);

    /// Checks the state once all memory is free.
    fn finish(&self, model: &Model);
}

/// Promises that an allocator makes or does not make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promises {
    /// Every misuse of a free is reported. Without this, programs free no block twice; wrong ranges are still
    /// reported.
    pub(crate) tells_double_frees: bool,
    /// A request that ignores watermarks finds any free block of its order, except in pageblocks that have or
    /// had holes. Without this, it finds a free page, unless only contiguous areas have one.
    pub(crate) finds_blocks: bool,
    /// No frame of a pageblock out of service is handed out. Without this, frames in page sets may be.
    pub(crate) keeps_isolated: bool,
}
