//! Implements `FrameAllocator`, the trait of this project's allocators.

use core::ops::Range;

use pageset_core::{
    AllocError, ConfigError, CpuId, FrameAllocator, FrameCensus, FrameUsage, FreeError, Order, Pfn, Request,
    TickOutcome, Violation,
};

use crate::{Access, BlockAllocator};

impl<A: Access> FrameAllocator for BlockAllocator<'_, A> {
    #[inline]
    fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        self.alloc(cpu, request)
    }

    #[inline]
    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        self.free(cpu, pfn, order)
    }

    fn alloc_bulk(
        &self,
        cpu: CpuId,
        request: &Request,
        pages: &mut [Option<Pfn>],
    ) -> Result<usize, AllocError> {
        self.alloc_bulk(cpu, request, pages)
    }

    fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), (usize, FreeError)> {
        self.free_batch(cpu, blocks)
    }

    fn alloc_exact(&self, cpu: CpuId, frames: u64, request: &Request) -> Result<Pfn, AllocError> {
        self.alloc_exact(cpu, frames, request)
    }

    fn alloc_at(&self, cpu: CpuId, pfn: Pfn, request: &Request) -> Result<(), AllocError> {
        self.alloc_at(cpu, pfn, request)
    }

    fn free_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.free_range(cpu, pfns)
    }

    fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError> {
        self.tick(cpu)
    }

    fn span(&self) -> Range<u64> {
        self.span()
    }

    fn usage(&self) -> FrameUsage {
        let mut usage =
            FrameUsage { shared_visits: self.counters().shared() as u64, ..FrameUsage::default() };
        for zone in self.zones() {
            // Race: other CPUs change the counts meanwhile, so `at_hand` may exceed `free`.
            usage.free += zone.free.saturating_sub(zone.at_hand);
            usage.at_hand += zone.at_hand;
            usage.whole_pageblocks += zone.whole_pageblocks;
        }
        usage
    }

    fn validate(&self) -> Result<FrameCensus, Violation> {
        self.validate()
    }
}
