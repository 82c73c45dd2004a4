//! What the model is told of an allocator beyond the family's trait.

use pageset_core::{CpuId, FrameAllocator, FreeError, FreeTraits, MigrateType, Order, Pfn};

use super::model::Model;
use super::operation::Operation;

/// An allocator that the model judges.
pub(crate) trait Subject {
    type Allocator: FrameAllocator;

    fn allocator(&self) -> &Self::Allocator;

    fn promises(&self) -> Promises;

    /// Frees as the family does; an allocator without such traits ignores them.
    fn free(&mut self, cpu: CpuId, pfn: Pfn, order: Order, traits: FreeTraits) -> Result<(), FreeError>;

    /// Whether pageblocks can become ones of this type.
    fn has_type(&self, migratetype: MigrateType) -> bool;

    /// Frames of a zone that are free.
    fn free_in(&self, zone: usize) -> u64;

    /// The block that goes out of service with a free frame, if it is more than that frame.
    fn goes_with(&self, pfn: Pfn) -> Option<(Pfn, Order)>;

    /// A CPU keeps nothing back after it was drained, as far as can be seen.
    fn check_drained(&self, cpu: CpuId);

    /// An operation that the family does not have.
    fn own(&self, model: &Model, operation: &Operation);

    /// What can be asked about a frame, a zone and a CPU, whether they exist or not.
    fn look(&self, model: &Model, cpu: u32, zone: usize, pfn: u64);

    /// All that can be seen besides the census.
    fn check(&mut self, model: &Model);

    /// How everything lies once all of it is free.
    fn finish(&self, model: &Model);
}

/// What an allocator promises, or does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promises {
    /// Every misuse of a free is told. Otherwise programs free no block twice; wrong ranges are told all the same.
    pub(crate) tells_double_frees: bool,
    /// A request that ignores watermarks finds a free block of its order if there is one, wherever it lies, but for pageblocks
    /// that have or had holes. Otherwise: it finds a free page, unless that is contiguous memory's.
    pub(crate) finds_blocks: bool,
    /// Nothing of a pageblock that is out of service is handed out. Otherwise: what a page set holds may be.
    pub(crate) keeps_isolated: bool,
}
