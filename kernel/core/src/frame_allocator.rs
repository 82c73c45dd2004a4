//! The interface that all page-frame allocators of this project have, so that a host, a test or the lab can
//! use any of these allocators.

use core::ops::Range;

use crate::check::{FrameCensus, Violation};
use crate::error::{AllocError, ConfigError, FreeError};
use crate::{CpuId, Order, PageAllocator, Pfn, Platform, Request, TickOutcome, ZoneKind};

/// A page-frame allocator, such as [`PageAllocator`] or the allocator of `pageset-blocks`.
///
/// Eight methods are required. All other methods have defaults that call only the required methods, so a
/// small allocator need not define the other methods. If [`PageAllocator`] has a method with the name of a
/// method of this trait, both methods do the same, with the same errors.
pub trait FrameAllocator {
    /// Allocates a block.
    ///
    /// # Errors
    /// See [`AllocError`].
    fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError>;

    /// Frees a block.
    ///
    /// # Errors
    /// See [`FreeError`]. A free that fails changes no block.
    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError>;

    /// Allocates the block of `request.order` that begins at the frame `pfn`.
    ///
    /// # Errors
    /// See [`AllocError`].
    fn alloc_at(&self, cpu: CpuId, pfn: Pfn, request: &Request) -> Result<(), AllocError>;

    /// Frees the frames of a range. The range may have whole blocks and parts of blocks.
    ///
    /// # Errors
    /// See [`FreeError`].
    fn free_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError>;

    /// Does one CPU's periodic work.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError>;

    /// The range from the first to the last frame of the allocator's zones.
    fn span(&self) -> Range<u64>;

    /// The use of memory, and how often CPUs have touched shared data. The call may visit every pageblock and
    /// every page set.
    fn usage(&self) -> FrameUsage;

    /// Checks all invariants that can be checked by inspection. O(frames).
    ///
    /// # Errors
    /// Returns the first invariant that is violated.
    fn validate(&self) -> Result<FrameCensus, Violation>;

    /// Allocates a block like [`alloc`](Self::alloc). If there is no memory for the request, calls `reclaim`
    /// before the allocation fails. `reclaim` gets two arguments: the highest kind of zone that the request
    /// may use, and the number of frames that the request wants. `reclaim` returns the number of frames that
    /// it freed. If the returned number is not 0, the allocation tries again. The allocator holds no lock
    /// during the call, so `reclaim` may use the same allocator. If a program does not call this method, the
    /// compiler leaves the method's code out.
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

    /// Allocates exactly `frames` contiguous frames. The request's order is ignored. Free the frames with
    /// [`free_range`](Self::free_range), all at once or in parts.
    ///
    /// # Errors
    /// [`AllocError::BadCount`] for zero frames, or for more than the largest block holds.
    /// [`AllocError::NotFree`] if another CPU marks a frame of the new block bad before this call returns.
    /// The error is the same if another caller frees a frame of the new block by mistake. The other frames of
    /// the block then stay in use, because another owner may already have them. Otherwise the same errors as
    /// [`alloc`](Self::alloc).
    fn alloc_exact(&self, cpu: CpuId, frames: u64, request: &Request) -> Result<Pfn, AllocError> {
        let order = Order::holding(frames).ok_or(AllocError::BadCount(frames))?;
        alloc_cut(self, cpu, frames, &Request { order, ..*request })
    }

    /// Fills the empty slots of `pages` with single pages. Returns the number of filled slots.
    ///
    /// # Errors
    /// [`AllocError::BulkOrder`] if the request's order is not 0. The errors of [`alloc`](Self::alloc), if no
    /// slot is filled.
    fn alloc_bulk(
        &self,
        cpu: CpuId,
        request: &Request,
        pages: &mut [Option<Pfn>],
    ) -> Result<usize, AllocError> {
        if request.order != Order::ZERO {
            return Err(AllocError::BulkOrder(request.order));
        }
        let mut filled = pages.iter().flatten().count();
        for slot in pages.iter_mut().filter(|slot| slot.is_none()) {
            match self.alloc(cpu, request) {
                Ok(pfn) => *slot = Some(pfn),
                Err(error) if filled == 0 => return Err(error),
                Err(_) => break,
            }
            filled += 1;
        }
        Ok(filled)
    }

    /// Frees blocks one after the other.
    ///
    /// # Errors
    /// Returns the index of the first block that could not be freed, and the reason. All blocks that can be
    /// freed are freed.
    fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), (usize, FreeError)> {
        let mut outcome = Ok(());
        for (place, (pfn, order)) in blocks.iter().enumerate() {
            outcome = outcome.and(self.free(cpu, *pfn, *order).map_err(|error| (place, error)));
        }
        outcome
    }
}

/// Allocates a block, keeps its first `frames` frames, and frees its other frames.
pub(crate) fn alloc_cut<A: FrameAllocator + ?Sized>(
    allocator: &A,
    cpu: CpuId,
    frames: u64,
    request: &Request,
) -> Result<Pfn, AllocError> {
    let pfn = allocator.alloc(cpu, request)?;
    let surplus = pfn.0 + frames..pfn.0 + u64::from(request.order.frames());
    if surplus.is_empty() {
        return Ok(pfn);
    }
    let Err(error) = allocator.free_range(cpu, surplus.clone()) else { return Ok(pfn) };
    if let FreeError::Leaked(bad) = error {
        // Race: another CPU marked a frame of the block bad, maybe after this call had freed the frames
        // before `bad`. The other frames still belong to this call. It frees them one by one, because some of
        // them may be out of service too.
        for frame in (pfn.0..surplus.start).chain(bad.0.max(surplus.start)..surplus.end) {
            allocator.free_range(cpu, frame..frame + 1).ok();
        }
    }
    // After another error, frames that are in use stay in use. Another caller freed a part of the block by
    // mistake, so these frames may belong to a new owner.
    Err(AllocError::NotFree(pfn))
}

/// The use of memory, in frames, and how often CPUs have touched shared data since the allocator was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameUsage {
    /// Number of free frames that every CPU may take.
    pub free: u64,
    /// Number of free frames that a CPU keeps for itself. Other CPUs get held frames only after the holding
    /// CPU gives the frames back or is drained.
    pub held: u64,
    /// Number of free frames that are reserved for one CPU. Other CPUs may take reserved frames if the other
    /// CPUs find no other free frames.
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
