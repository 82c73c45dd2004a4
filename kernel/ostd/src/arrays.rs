//! pageset's own allocator, and for each CPU the arrays of the blocks that the CPU freed last.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use pageset_blocks::{BlockAllocator, CpuArrays, Tables};
use pageset_core::{
    AllocError, Config, ConfigError, CpuId, FrameAllocator, FrameCensus, FrameUsage, FreeError, Order, Pfn,
    Request, TickOutcome, Violation,
};
use spin::Mutex;

use crate::engine::Engine;

/// The allocator, and the arrays of all CPUs.
///
/// Race: a CPU uses its arrays, and another CPU, which is short of memory, drains them. The CPU that takes
/// the lock of these arrays second loses, and waits. Interrupts are off during each call, so a CPU never
/// waits for itself.
#[derive(Debug)]
pub struct ArrayEngine {
    below: &'static BlockAllocator<'static>,
    arrays: Vec<Mutex<CpuArrays<'static>>>,
}

impl ArrayEngine {
    fn drain(&self) {
        self.arrays.iter().for_each(|arrays| arrays.lock().drain());
    }

    fn frames(&self) -> u64 {
        self.arrays.iter().map(|arrays| u64::from(arrays.lock().frames())).sum()
    }

    /// Tries a request. If memory is short, drains all arrays and tries once more.
    #[inline]
    fn drained_if_short<R>(&self, alloc: impl Fn() -> Result<R, AllocError>) -> Result<R, AllocError> {
        match alloc() {
            Err(AllocError::OutOfMemory { .. } | AllocError::NotFree(_)) => {
                self.drain();
                alloc()
            }
            outcome => outcome,
        }
    }
}

impl FrameAllocator for ArrayEngine {
    #[inline]
    fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        let arrays = self.arrays.get(cpu.index()).ok_or(AllocError::BadCpu(cpu))?;
        self.drained_if_short(|| arrays.lock().alloc(request))
    }

    #[inline]
    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        self.arrays.get(cpu.index()).ok_or(FreeError::BadCpu(cpu))?.lock().free(pfn, order)
    }

    fn alloc_at(&self, cpu: CpuId, pfn: Pfn, request: &Request) -> Result<(), AllocError> {
        self.drained_if_short(|| self.below.alloc_at(cpu, pfn, request))
    }

    fn free_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.below.free_range(cpu, pfns)
    }

    fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError> {
        self.arrays.get(cpu.index()).ok_or(ConfigError::BadCpu(cpu.0))?.lock().tick()
    }

    fn span(&self) -> Range<u64> {
        self.below.span()
    }

    fn usage(&self) -> FrameUsage {
        FrameUsage { held: self.frames(), ..FrameAllocator::usage(self.below) }
    }

    fn validate(&self) -> Result<FrameCensus, Violation> {
        let census = self.below.validate()?;
        let cached = self.frames();
        Ok(FrameCensus { cached, allocated: census.allocated.saturating_sub(cached), ..census })
    }
}

impl Engine for ArrayEngine {
    type Tables = Tables<'static>;

    fn tables(config: &Config<'_>) -> Result<Self::Tables, ConfigError> {
        Tables::on_heap(config)
    }

    /// The allocator stays on the heap for ever, as a kernel's frame allocator does.
    fn build(config: &Config<'_>, tables: Self::Tables) -> Result<Self, ConfigError> {
        let below: &'static BlockAllocator<'static> = Box::leak(Box::new(BlockAllocator::new(config, tables)?));
        let cpus = 0..config.cpus.len() as u32;
        Ok(Self { below, arrays: cpus.map(|cpu| Mutex::new(CpuArrays::new(below, CpuId(cpu)))).collect() })
    }

    fn alloc_contiguous(
        &self,
        cpu: CpuId,
        frames: u64,
        align: u64,
        request: &Request,
    ) -> Result<Pfn, AllocError> {
        self.drained_if_short(|| self.below.alloc_contiguous(cpu, frames, align, request))
    }

    fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.below.split_range(cpu, pfns)
    }

    fn add_memory(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), ConfigError> {
        self.below.add_memory(cpu, pfns)
    }
}
