//! What every page-frame allocator of this family does, so that a host, a test or a laboratory can take any of them.

use core::ops::Range;

use crate::check::{FrameCensus, Violation};
use crate::error::{AllocError, ConfigError, FreeError};
use crate::{
    CpuId, MigrateType, Order, PageAllocator, Pfn, Platform, Request, TickOutcome, Watermarks, ZoneId,
    ZoneKind,
};

/// A page-frame allocator: [`PageAllocator`], which does what Linux does, or another one.
///
/// Each method is as the [`PageAllocator`]'s of the same name, errors included. An implementation may refuse what it
/// cannot do with an error, never with a panic.
pub trait FrameAllocator {
    /// Allocates a block.
    ///
    /// # Errors
    /// See [`AllocError`].
    fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError>;

    /// As [`alloc`](Self::alloc). Before it fails for want of memory, it calls `reclaim` with the highest kind of zone that the request may
    /// use and the frames that it wants, and tries again as long as `reclaim` says that it freed some. No lock is held meanwhile, so
    /// `reclaim` may allocate and free by the same allocator. Who does not call this has no such code.
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
    /// See [`FreeError`]. The allocator is unchanged then.
    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError>;

    /// Fills the empty slots of `pages` with single pages, and returns how many slots are filled then.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), if not one page could be had.
    fn alloc_bulk(
        &self,
        cpu: CpuId,
        request: &Request,
        pages: &mut [Option<Pfn>],
    ) -> Result<usize, AllocError>;

    /// Frees blocks one after the other.
    ///
    /// # Errors
    /// The place of the first block that could not be freed, and why. The other blocks are freed nevertheless.
    fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), (usize, FreeError)>;

    /// Allocates contiguous frames, any number of them.
    ///
    /// # Errors
    /// See [`AllocError`].
    fn alloc_exact(&self, cpu: CpuId, frames: u64, request: &Request) -> Result<Pfn, AllocError>;

    /// Allocates the block that begins at this frame.
    ///
    /// # Errors
    /// See [`AllocError`].
    fn alloc_at(&self, cpu: CpuId, pfn: Pfn, request: &Request) -> Result<(), AllocError>;

    /// Frees these frames, whatever blocks they are parts of.
    ///
    /// # Errors
    /// See [`FreeError`].
    fn free_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError>;

    /// Turns the blocks of a range into single frames.
    ///
    /// # Errors
    /// See [`FreeError`].
    fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError>;

    /// Takes frames that were holes of its zones until now, and makes them free.
    ///
    /// # Errors
    /// See [`ConfigError`]. The allocator is unchanged then.
    fn add_memory(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), ConfigError>;

    /// Does one CPU's periodic work.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError>;

    /// Lets everybody have what one CPU keeps back; `cpu` does it.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] if either CPU is unknown.
    fn drain_cpu(&self, cpu: CpuId, of: CpuId) -> Result<(), ConfigError>;

    /// Lets everybody have what any CPU keeps back.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    fn drain_all(&self, cpu: CpuId) -> Result<(), ConfigError>;

    /// Takes a CPU off-line: it keeps nothing back any more. All are on-line at first.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    fn cpu_offline(&self, cpu: CpuId) -> Result<(), ConfigError>;

    /// Brings a CPU back.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    fn cpu_online(&self, cpu: CpuId) -> Result<(), ConfigError>;

    /// Takes a pageblock out of service: its free frames are handed out no more.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn isolate_pageblock(&self, cpu: CpuId, pfn: Pfn) -> Result<(), ConfigError>;

    /// Returns a pageblock to service, for requests of `migratetype`.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn unisolate_pageblock(&self, cpu: CpuId, pfn: Pfn, migratetype: MigrateType) -> Result<(), ConfigError>;

    /// Takes a frame out of service for good: alone if it is free, otherwise with the block that it is part of.
    ///
    /// # Errors
    /// See [`FreeError`].
    fn mark_bad(&self, cpu: CpuId, pfn: Pfn) -> Result<(), FreeError>;

    /// Sets `min_free_kbytes`; all watermarks follow.
    fn set_min_free_kbytes(&self, kbytes: u64);

    /// Sets one zone's watermarks outright.
    ///
    /// # Errors
    /// [`ConfigError::BadZone`] for an unknown zone.
    fn set_watermarks(&self, zone: ZoneId, watermarks: Watermarks) -> Result<(), ConfigError>;

    /// From the first to the last frame of its zones.
    fn span(&self) -> Range<u64>;

    /// What memory is used for, and how often CPUs met. O(pageblocks) at most.
    fn usage(&self) -> FrameUsage;

    /// Checks everything that can be checked by looking. O(frames).
    ///
    /// # Errors
    /// The first violated invariant.
    fn validate(&self) -> Result<FrameCensus, Violation>;
}

/// What memory is used for, in frames, and how often CPUs met over it since the allocator was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameUsage {
    /// Free, and kept back by no CPU.
    pub free: u64,
    /// Free, and kept back by a CPU: others get them only if that CPU gives them back or is made to.
    pub held: u64,
    /// Free, and meant for one CPU, but others may take them.
    pub at_hand: u64,
    /// Pageblocks that are free as a whole, and kept back by no CPU.
    pub whole_pageblocks: u64,
    /// Times a CPU took a lock of a zone's, or changed what all CPUs of a zone share.
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
