//! The interface that the model needs to test an allocator: `FrameAllocator`, and some more methods.

use std::ops::Range;

use pageset_core::{
    ConfigError, CpuId, FrameAllocator, FreeError, FreeTraits, MigrateType, Order, Pfn, Watermarks, ZoneId,
};

use super::model::Model;
use super::operation::Operation;

/// An allocator that the model tests.
pub(crate) trait Subject {
    type Allocator: Administered;

    fn allocator(&self) -> &Self::Allocator;

    fn promises(&self) -> Promises;

    /// Frees a block. An allocator that has no `FreeTraits` ignores `traits`.
    fn free(&mut self, cpu: CpuId, pfn: Pfn, order: Order, traits: FreeTraits) -> Result<(), FreeError>;

    /// Whether pageblocks can have this type.
    fn has_type(&self, migratetype: MigrateType) -> bool;

    /// Number of free frames of a zone.
    fn free_in(&self, zone: usize) -> u64;

    /// The block that goes out of service together with a free frame. `None` if the frame goes out of service
    /// alone.
    fn goes_with(&self, pfn: Pfn) -> Option<(Pfn, Order)>;

    /// Checks that a drained CPU keeps no memory for itself, as far as the allocator reports a CPU's memory.
    fn check_drained(&self, cpu: CpuId);

    /// Runs an operation that is not in `FrameAllocator`.
    fn own(&self, model: &Model, operation: &Operation);

    /// Calls queries of the allocator, and compares the answers with the model. The arguments may name a
    /// frame, a zone or a CPU that does not exist.
    fn look(&self, model: &Model, cpu: u32, zone: usize, pfn: u64);

    /// Checks the allocator's visible state, except the numbers of frames in each state.
    fn check(&mut self, model: &Model);

    /// Checks the allocator's state after all memory was freed.
    fn finish(&self, model: &Model);
}

/// The methods for an administrator of memory. Both allocators have the methods of `Administered` with the
/// same signatures, except for `drain_cpu` and `drain_all`.
pub(crate) trait Administered: FrameAllocator {
    fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError>;
    fn add_memory(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), ConfigError>;
    fn drain_cpu(&self, cpu: CpuId, of: CpuId) -> Result<(), ConfigError>;
    fn drain_all(&self, cpu: CpuId) -> Result<(), ConfigError>;
    fn cpu_offline(&self, cpu: CpuId) -> Result<(), ConfigError>;
    fn cpu_online(&self, cpu: CpuId) -> Result<(), ConfigError>;
    fn isolate_pageblock(&self, cpu: CpuId, pfn: Pfn) -> Result<(), ConfigError>;
    fn unisolate_pageblock(&self, cpu: CpuId, pfn: Pfn, migratetype: MigrateType) -> Result<(), ConfigError>;
    fn mark_bad(&self, cpu: CpuId, pfn: Pfn) -> Result<(), FreeError>;
    fn set_min_free_kbytes(&self, kbytes: u64);
    fn set_watermarks(&self, zone: ZoneId, watermarks: Watermarks) -> Result<(), ConfigError>;
}

/// Implements [`Administered`] by the allocator's own methods. The methods `drain_cpu` and `drain_all` are
/// arguments of the macro, because their signatures differ between the two allocators.
macro_rules! administered {
    ($allocator:ty, $($drains:item)*) => {
        impl Administered for $allocator {
            $($drains)*
            fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
                <$allocator>::split_range(self, cpu, pfns)
            }
            fn add_memory(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), ConfigError> {
                <$allocator>::add_memory(self, cpu, pfns)
            }
            fn cpu_offline(&self, cpu: CpuId) -> Result<(), ConfigError> {
                <$allocator>::cpu_offline(self, cpu)
            }
            fn cpu_online(&self, cpu: CpuId) -> Result<(), ConfigError> {
                <$allocator>::cpu_online(self, cpu)
            }
            fn isolate_pageblock(&self, cpu: CpuId, pfn: Pfn) -> Result<(), ConfigError> {
                <$allocator>::isolate_pageblock(self, cpu, pfn)
            }
            fn unisolate_pageblock(&self, cpu: CpuId, pfn: Pfn, to: MigrateType) -> Result<(), ConfigError> {
                <$allocator>::unisolate_pageblock(self, cpu, pfn, to)
            }
            fn mark_bad(&self, cpu: CpuId, pfn: Pfn) -> Result<(), FreeError> {
                <$allocator>::mark_bad(self, cpu, pfn)
            }
            fn set_min_free_kbytes(&self, kbytes: u64) {
                <$allocator>::set_min_free_kbytes(self, kbytes);
            }
            fn set_watermarks(&self, zone: ZoneId, watermarks: Watermarks) -> Result<(), ConfigError> {
                <$allocator>::set_watermarks(self, zone, watermarks)
            }
        }
    };
}
pub(crate) use administered;

/// Promises that some allocators make and other allocators do not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promises {
    /// The allocator reports every double free. Without this promise, programs free no block twice. An
    /// allocator without this promise must still report all wrong frees that are not double frees.
    pub(crate) tells_double_frees: bool,
    /// A request that ignores watermarks finds any free block of its order, except in pageblocks that have or
    /// had holes. Without this promise, a request for a single page that ignores watermarks still finds a
    /// free page, unless all free pages are in contiguous areas.
    pub(crate) finds_blocks: bool,
    /// The allocator hands out no frame of a pageblock that is out of service. Without this promise, the
    /// allocator may hand out frames that were in page sets when their pageblock went out of service.
    pub(crate) keeps_isolated: bool,
}
