//! Allocates more frames than the largest block has, or the frames of a given range.
//!
//! Race: this CPU takes the blocks of a range one after the other, and another CPU takes one of these blocks
//! meanwhile. This CPU loses, and frees the blocks that this CPU has taken. No caller has a block of the
//! range yet, so this CPU can safely free the blocks.

use core::ops::Range;

use super::PageAllocator;
use super::range::blocks_of;
use crate::error::AllocError;
use crate::frame_allocator::alloc_cut;
use crate::platform::Platform;
use crate::request::Request;
use crate::zone::Zone;
use crate::{CpuId, Order, PAGEBLOCK_FRAMES, Pfn};

impl<P: Platform> PageAllocator<'_, P> {
    /// Allocates the frames of a given range. The request's order, zone, node and address limit are ignored.
    /// Free the frames with [`free_range`](Self::free_range), all at once or in parts. A long range costs one
    /// block allocation for each 1024 frames.
    ///
    /// # Errors
    /// [`AllocError::BadCount`] if the range has no frames. Otherwise the errors of
    /// [`alloc_at`](Self::alloc_at), for the first block of the range that could not be allocated. A call
    /// that fails allocates nothing.
    pub fn alloc_range(&self, cpu: CpuId, pfns: Range<u64>, request: &Request) -> Result<(), AllocError> {
        self.check_request(cpu, request)?;
        if pfns.is_empty() {
            return Err(AllocError::BadCount(0));
        }
        self.take_range(cpu, pfns, request).map_err(|(_, error)| error)
    }

    /// Allocates `frames` contiguous frames, up to a whole zone. The first frame is a multiple of `align`, a
    /// power of two. The request's order is ignored. Free the frames with [`free_range`](Self::free_range),
    /// all at once or in parts.
    ///
    /// A call for up to 1024 frames with an alignment up to 1024 usually costs as much as the allocation of
    /// one block. Any other call tries the start of each pageblock, or each multiple of a larger `align`, as
    /// the first frame. A call that tries each pageblock takes O(pageblocks) time. Each attempt takes the
    /// zone's lock.
    ///
    /// # Errors
    /// [`AllocError::BadCount`] if `frames` is 0, [`AllocError::BadAlign`] if `align` is not a power of two.
    /// [`AllocError::NotFree`] in the cases of [`alloc_exact`](Self::alloc_exact). Otherwise the errors of
    /// [`alloc`](Self::alloc).
    pub fn alloc_contiguous(
        &self,
        cpu: CpuId,
        frames: u64,
        align: u64,
        request: &Request,
    ) -> Result<Pfn, AllocError> {
        self.check_request(cpu, request)?;
        if frames == 0 {
            return Err(AllocError::BadCount(frames));
        }
        if !align.is_power_of_two() {
            return Err(AllocError::BadAlign(align));
        }
        let holding = Order::holding(frames.max(align));
        let request = Request { order: holding.unwrap_or(Order::MAX), ..*request };
        if holding.is_some() {
            match alloc_cut(self, cpu, frames, &request) {
                // No free block is large enough. Neighbouring free blocks together may have enough frames.
                Err(AllocError::OutOfMemory { .. }) => {}
                outcome => return outcome,
            }
        }
        let start = self.start(cpu, &request)?;
        let step = align.max(u64::from(PAGEBLOCK_FRAMES));
        self.zones_for(&request, start.node)
            .find_map(|zone| self.take_contiguous(cpu, zone, frames, step, &request))
            .ok_or(AllocError::OutOfMemory { order: request.order })
    }

    /// Allocates the first free range of this zone that has `frames` frames and begins at a multiple of
    /// `step`.
    fn take_contiguous(
        &self,
        cpu: CpuId,
        zone: &Zone<'_, P>,
        frames: u64,
        step: u64,
        request: &Request,
    ) -> Option<Pfn> {
        let span = zone.body.span.pfns();
        let mut start = span.start.checked_next_multiple_of(step)?;
        while start.checked_add(frames).is_some_and(|end| end <= span.end) {
            match self.take_range(cpu, start..start + frames, request) {
                Ok(()) => return Some(Pfn(start)),
                // The zone has too little memory above its min watermark, so do not try other places.
                Err((_, AllocError::OutOfMemory { .. })) => return None,
                Err((busy, _)) => start = (busy.0 + 1).checked_next_multiple_of(step)?,
            }
        }
        None
    }

    /// Allocates all blocks of a range. If the allocation of one block fails, frees the blocks that this call
    /// allocated before, and returns the first frame of the failed block with the error.
    fn take_range(&self, cpu: CpuId, pfns: Range<u64>, request: &Request) -> Result<(), (Pfn, AllocError)> {
        for (pfn, order) in blocks_of(pfns.clone()) {
            if let Err(error) = self.alloc_at(cpu, pfn, &Request { order, ..*request }) {
                if pfns.start < pfn.0 {
                    let freed = self.free_range(cpu, pfns.start..pfn.0);
                    debug_assert!(freed.is_ok(), "only this call knows the blocks");
                }
                return Err((pfn, error));
            }
        }
        Ok(())
    }
}
