//! An allocator with the arrays of all CPUs, for a program that plays all CPUs on one thread.

use core::cell::{RefCell, RefMut};
use core::ops::Range;

use pageset_core::{
    AllocError, ConfigError, CpuId, FrameAllocator, FrameCensus, FrameUsage, FreeError, Order, Pfn, Request,
    Storage, TickOutcome, Violation,
};

use crate::{BlockAllocator, CpuArrays};

/// An allocator, and the [arrays](CpuArrays) of all of its CPUs. Simulations use this type to play many CPUs
/// on one thread.
///
/// Each CPU's operations use its own arrays. If memory is short, a request drains the arrays of all CPUs and
/// tries once more. The request does not drain the arrays of a CPU that is in the middle of an operation.
/// Settings that need no arrays are methods of [the allocator below](Self::below).
#[derive(Debug)]
pub struct EveryCpu<'a> {
    allocator: &'a BlockAllocator<'a>,
    arrays: Storage<'a, RefCell<CpuArrays<'a>>>,
}

impl<'a> EveryCpu<'a> {
    /// Empty arrays for all CPUs.
    ///
    /// # Errors
    /// [`ConfigError::OutOfMemory`] if the heap has too little memory.
    pub fn new(allocator: &'a BlockAllocator<'a>) -> Result<Self, ConfigError> {
        let mut cpus = 0..;
        let next = || RefCell::new(CpuArrays::new(allocator, CpuId(cpus.next().unwrap_or(0))));
        let arrays = Storage::owned(allocator.cpus(), next)?;
        Ok(Self { allocator, arrays })
    }

    /// The allocator below.
    #[must_use]
    pub fn below(&self) -> &'a BlockAllocator<'a> {
        self.allocator
    }

    /// Drains the arrays of CPU `of`, and then the CPU, as [`BlockAllocator::drain_cpu`] does.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn drain_cpu(&self, of: CpuId) -> Result<(), ConfigError> {
        self.of(of).into_iter().for_each(|mut arrays| arrays.drain());
        self.allocator.drain_cpu(of)
    }

    /// Drains all arrays, and then all CPUs, as [`BlockAllocator::drain_all`] does.
    pub fn drain_all(&self) {
        self.drain_arrays();
        self.allocator.drain_all();
    }

    /// Drains the arrays of a CPU, and takes it offline.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn cpu_offline(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.of(cpu).into_iter().for_each(|mut arrays| arrays.drain());
        self.allocator.cpu_offline(cpu)
    }

    /// Takes a pageblock out of service. Drains all arrays first, because they may hold frames of the
    /// pageblock.
    ///
    /// # Errors
    /// The errors of [`BlockAllocator::isolate_pageblock`].
    pub fn isolate_pageblock(&self, cpu: CpuId, pfn: Pfn) -> Result<(), ConfigError> {
        self.drain_arrays();
        self.allocator.isolate_pageblock(cpu, pfn)
    }

    /// Takes a frame out of service. Drains all arrays first, because an array may hold the frame.
    ///
    /// # Errors
    /// The errors of [`BlockAllocator::mark_bad`].
    pub fn mark_bad(&self, cpu: CpuId, pfn: Pfn) -> Result<(), FreeError> {
        self.drain_arrays();
        self.allocator.mark_bad(cpu, pfn)
    }

    /// A CPU's arrays. Returns `None` if the CPU is in the middle of an operation. An interrupt handler that
    /// gets `None` uses the allocator directly.
    fn of(&self, cpu: CpuId) -> Option<RefMut<'_, CpuArrays<'a>>> {
        self.arrays.get(cpu.index())?.try_borrow_mut().ok()
    }

    fn drain_arrays(&self) {
        (0..self.arrays.len() as u32)
            .filter_map(|cpu| self.of(CpuId(cpu)))
            .for_each(|mut arrays| arrays.drain());
    }

    /// Frames in arrays.
    fn frames(&self) -> u64 {
        let of_cpu =
            |arrays: &RefCell<CpuArrays<'_>>| arrays.try_borrow().map_or(0, |arrays| arrays.frames());
        self.arrays.iter().map(of_cpu).map(u64::from).sum()
    }

    /// Tries a request. If the request finds too few free frames and arrays hold some, drains all arrays and
    /// tries once more.
    fn drained_if_short<R>(&self, alloc: impl Fn() -> Result<R, AllocError>) -> Result<R, AllocError> {
        match alloc() {
            Err(AllocError::OutOfMemory { .. } | AllocError::NotFree(_)) if self.frames() > 0 => {
                self.drain_arrays();
                alloc()
            }
            outcome => outcome,
        }
    }
}

impl FrameAllocator for EveryCpu<'_> {
    fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        self.drained_if_short(|| match self.of(cpu) {
            Some(mut arrays) => arrays.alloc(request),
            None => self.allocator.alloc(cpu, request),
        })
    }

    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        match self.of(cpu) {
            Some(mut arrays) => arrays.free(pfn, order),
            None => self.allocator.free(cpu, pfn, order),
        }
    }

    fn alloc_exact(&self, cpu: CpuId, frames: u64, request: &Request) -> Result<Pfn, AllocError> {
        self.drained_if_short(|| self.allocator.alloc_exact(cpu, frames, request))
    }

    fn alloc_at(&self, cpu: CpuId, pfn: Pfn, request: &Request) -> Result<(), AllocError> {
        self.drained_if_short(|| self.allocator.alloc_at(cpu, pfn, request))
    }

    fn free_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.allocator.free_range(cpu, pfns)
    }

    fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError> {
        match self.of(cpu) {
            Some(mut arrays) => arrays.tick(),
            None => self.allocator.tick(cpu),
        }
    }

    fn span(&self) -> Range<u64> {
        self.allocator.span()
    }

    fn usage(&self) -> FrameUsage {
        FrameUsage { held: self.frames(), ..FrameAllocator::usage(self.allocator) }
    }

    fn validate(&self) -> Result<FrameCensus, Violation> {
        let census = self.allocator.validate()?;
        let cached = self.frames();
        Ok(FrameCensus { cached, allocated: census.allocated.saturating_sub(cached), ..census })
    }
}
