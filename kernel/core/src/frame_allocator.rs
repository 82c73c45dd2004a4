//! The interface that this project's page-frame allocators have in common, so that a host, a test or the lab
//! can use any of them.

use core::ops::Range;

use crate::check::{FrameCensus, Violation};
use crate::error::{AllocError, ConfigError, FreeError};
use crate::{
    CpuId, MigrateType, Order, PageAllocator, Pfn, Platform, Request, TickOutcome, Watermarks, ZoneId,
    ZoneKind,
};

/// A page-frame allocator, such as [`PageAllocator`] or the allocator of `pageset-blocks`.
///
/// Each method does the same as the [`PageAllocator`] method of the same name, with the same errors. If an
/// implementation cannot do an operation, it returns an error and never panics.
pub trait FrameAllocator {
    /// Allocates a block.
    ///
    /// # Errors
    /// See [`AllocError`].
    fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError>;

    /// Allocates a block like [`alloc`](Self::alloc), but calls `reclaim` before it fails because no memory
    /// is free. `reclaim` gets two arguments: the highest kind of zone that the request may use, and the
    /// number of frames that the request wants. If `reclaim` returns that it freed frames, the allocation
    /// tries again. The allocator holds no lock during the call, so `reclaim` may use the same allocator. A
    /// program that does not call this method does not contain its code.
    ///
    /// # Errors
    /// See [`AllocError`].
    fn alloc_or_reclaim(
        &self,
        cpu: CpuId,
        request: &Request,
        mut reclaim: impl FnMut(ZoneKind, u64) -> u64,
    ) -> Result<Pfn, AllocError>
    where
        Self: Sized,
    {
        loop {
            match self.alloc(cpu, request) {
                Err(AllocError::OutOfMemory { order })
                    if reclaim(request.highest_zone, u64::from(order.frames())) > 0 => {}
                outcome => return outcome,
            }
        }
    }

    /// Frees a block.
    ///
    /// # Errors
    /// See [`FreeError`]. A free that fails does not change the allocator.
    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError>;

    /// Fills the empty slots of `pages` with single pages. Returns the number of filled slots.
    ///
    /// # Errors
    /// The errors of [`alloc`](Self::alloc), if not even one page could be allocated.
    fn alloc_bulk(
        &self,
        cpu: CpuId,
        request: &Request,
        pages: &mut [Option<Pfn>],
    ) -> Result<usize, AllocError>;

    /// Frees blocks one after the other.
    ///
    /// # Errors
    /// Returns the index of the first block that could not be freed, and the reason. All blocks that can be
    /// freed are freed.
    fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), (usize, FreeError)>;

    /// Allocates any number of contiguous frames.
    ///
    /// # Errors
    /// See [`AllocError`].
    fn alloc_exact(&self, cpu: CpuId, frames: u64, request: &Request) -> Result<Pfn, AllocError>;

    /// Allocates the block that begins at this frame.
    ///
    /// # Errors
    /// See [`AllocError`].
    fn alloc_at(&self, cpu: CpuId, pfn: Pfn, request: &Request) -> Result<(), AllocError>;

    /// Frees these frames, whether they are whole blocks or parts of blocks.
    ///
    /// # Errors
    /// See [`FreeError`].
    fn free_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError>;

    /// Turns the blocks of a range into single frames.
    ///
    /// # Errors
    /// See [`FreeError`].
    fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError>;

    /// Makes frames free that were holes of the zones until now.
    ///
    /// # Errors
    /// See [`ConfigError`]. A call that fails does not change the allocator.
    fn add_memory(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), ConfigError>;

    /// Does one CPU's periodic work.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError>;

    /// Takes the memory that CPU `of` keeps for itself, and makes it available to all CPUs. `cpu` is the CPU
    /// that does the work.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] if either CPU is unknown.
    fn drain_cpu(&self, cpu: CpuId, of: CpuId) -> Result<(), ConfigError>;

    /// Takes the memory that CPUs keep for themselves, and makes it available to all CPUs.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    fn drain_all(&self, cpu: CpuId) -> Result<(), ConfigError>;

    /// Takes a CPU offline, and makes the memory that the CPU kept for itself available to all CPUs. All CPUs
    /// are online at first.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    fn cpu_offline(&self, cpu: CpuId) -> Result<(), ConfigError>;

    /// Brings a CPU online again.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    fn cpu_online(&self, cpu: CpuId) -> Result<(), ConfigError>;

    /// Takes a pageblock out of service: its free frames are not handed out any more.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn isolate_pageblock(&self, cpu: CpuId, pfn: Pfn) -> Result<(), ConfigError>;

    /// Returns a pageblock to service, for requests of `migratetype`.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn unisolate_pageblock(&self, cpu: CpuId, pfn: Pfn, migratetype: MigrateType) -> Result<(), ConfigError>;

    /// Takes a frame out of service for good. If the frame is free, only this frame goes out of service. If
    /// it is part of an allocated or cached block, the whole block goes out of service.
    ///
    /// # Errors
    /// See [`FreeError`].
    fn mark_bad(&self, cpu: CpuId, pfn: Pfn) -> Result<(), FreeError>;

    /// Sets `min_free_kbytes` and recomputes all watermarks.
    fn set_min_free_kbytes(&self, kbytes: u64);

    /// Sets one zone's watermarks directly.
    ///
    /// # Errors
    /// [`ConfigError::BadZone`] for an unknown zone.
    fn set_watermarks(&self, zone: ZoneId, watermarks: Watermarks) -> Result<(), ConfigError>;

    /// The range from the first to the last frame of the allocator's zones.
    fn span(&self) -> Range<u64>;

    /// The use of memory, and how often CPUs have touched shared data. O(pageblocks) at most.
    fn usage(&self) -> FrameUsage;

    /// Checks all invariants that can be checked by inspection. O(frames).
    ///
    /// # Errors
    /// Returns the first invariant that is violated.
    fn validate(&self) -> Result<FrameCensus, Violation>;
}

/// The use of memory, in frames, and how often CPUs have touched shared data since the allocator was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameUsage {
    /// Number of free frames that every CPU may take.
    pub free: u64,
    /// Number of free frames that a CPU keeps for itself. Other CPUs get these frames only after that CPU
    /// gives them back or is drained.
    pub held: u64,
    /// Number of free frames that are reserved for one CPU. Other CPUs may take these frames if they find no
    /// others.
    pub at_hand: u64,
    /// Number of completely free pageblocks that every CPU may take.
    pub whole_pageblocks: u64,
    /// Number of times that a CPU took a zone's lock, or changed data that all CPUs of a zone share.
    pub shared_visits: u64,
}

impl<P: Platform> FrameAllocator for PageAllocator<'_, P> {
    fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        self.alloc(cpu, request)
    }

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

    fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.split_range(cpu, pfns)
    }

    fn add_memory(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), ConfigError> {
        self.add_memory(cpu, pfns)
    }

    fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError> {
        self.tick(cpu)
    }

    fn drain_cpu(&self, cpu: CpuId, of: CpuId) -> Result<(), ConfigError> {
        self.drain_cpu(cpu, of).map(drop)
    }

    fn drain_all(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.drain_all(cpu).map(drop)
    }

    fn cpu_offline(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.cpu_offline(cpu)
    }

    fn cpu_online(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.cpu_online(cpu)
    }

    fn isolate_pageblock(&self, cpu: CpuId, pfn: Pfn) -> Result<(), ConfigError> {
        self.isolate_pageblock(cpu, pfn)
    }

    fn unisolate_pageblock(&self, cpu: CpuId, pfn: Pfn, migratetype: MigrateType) -> Result<(), ConfigError> {
        self.unisolate_pageblock(cpu, pfn, migratetype)
    }

    fn mark_bad(&self, cpu: CpuId, pfn: Pfn) -> Result<(), FreeError> {
        self.mark_bad(cpu, pfn)
    }

    fn set_min_free_kbytes(&self, kbytes: u64) {
        self.set_min_free_kbytes(kbytes);
    }

    fn set_watermarks(&self, zone: ZoneId, watermarks: Watermarks) -> Result<(), ConfigError> {
        self.set_watermarks(zone, watermarks)
    }

    fn span(&self) -> Range<u64> {
        let spans = || self.zones().map(|zone| zone.span);
        let start = spans().map(|span| span.start).min().unwrap_or(0);
        start..spans().map(|span| span.end).max().unwrap_or(0)
    }

    fn usage(&self) -> FrameUsage {
        let mut usage = FrameUsage {
            held: self.cached_pages(),
            shared_visits: self.counters().zone_lock_acquisitions,
            ..FrameUsage::default()
        };
        for zone in self.zones() {
            usage.free += zone.free;
            usage.whole_pageblocks += zone.whole_pageblocks();
        }
        usage
    }

    fn validate(&self) -> Result<FrameCensus, Violation> {
        self.validate()
    }
}
