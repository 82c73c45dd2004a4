//! Allocates a block at a given frame or an exact number of frames, and frees parts of blocks.

use core::ops::Range;

use super::PageAllocator;
use super::free::{FreeTraits, refusal};
use crate::error::{AllocError, FreeError};
use crate::event::{Event, FoundAt, emit};
use crate::frame::{FrameIndex, State};
use crate::frame_allocator::FrameAllocator;
use crate::platform::Platform;
use crate::request::{AllocFlags, Request};
use crate::zone::{Watermark, Zone};
use crate::{CpuId, MAX_ORDER, MigrateType, Order, Pfn, ZoneKind};

/// Result of trying to take a block at a given place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Yes,
    /// Some frames of the block may be in page sets. The caller drains page sets and tries again.
    MaybeAfterDrain,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Allocates the block of `request.order` that starts at `pfn`, if all its frames are free. If page sets
    /// may hold some frames of the block, this function drains the zone's page sets and tries again. The
    /// request's zone, node and address limit are ignored.
    ///
    /// # Errors
    /// Returns [`AllocError::BadCpu`], [`AllocError::BadType`], [`AllocError::Foreign`],
    /// [`AllocError::Misaligned`] or [`AllocError::NotFree`] for a bad argument or a frame that is not free.
    /// Returns [`AllocError::OutOfMemory`] if the zone's free memory would not stay above its min watermark
    /// and the request does not ignore watermarks.
    pub fn alloc_at(&self, cpu: CpuId, pfn: Pfn, request: &Request) -> Result<(), AllocError> {
        let order = request.order;
        self.check_request(cpu, request)?;
        if !pfn.is_aligned(order) {
            return Err(AllocError::Misaligned(pfn, order));
        }
        let (zone, frame) = self.locate(pfn).ok_or(AllocError::Foreign(pfn))?;
        if self.take_at(cpu, zone, frame, request)? == Taken::MaybeAfterDrain {
            self.drain_pagesets_of(cpu, zone);
            if self.take_at(cpu, zone, frame, request)? == Taken::MaybeAfterDrain {
                return Err(AllocError::NotFree(pfn));
            }
        }
        emit(self.platform.events(), cpu, || Event::MmPageAlloc {
            pfn: Some(pfn),
            order,
            migratetype: request.migratetype,
        });
        Ok(())
    }

    fn take_at(
        &self,
        cpu: CpuId,
        zone: &Zone<'_, P>,
        frame: FrameIndex,
        request: &Request,
    ) -> Result<Taken, AllocError> {
        let order = request.order;
        let pfn = zone.body.span.pfn(frame);
        self.pagesets.at(zone, cpu, &self.policy, &self.platform).pageset.touch();
        zone.with_lock(&self.platform, cpu, |locked| {
            match locked.body.frames.covering_block(frame) {
                Some((_, State::Free { migratetype: MigrateType::Isolate, .. })) => {
                    return Err(AllocError::NotFree(pfn));
                }
                Some((_, State::Free { .. })) => {}
                Some((_, State::Cached { .. } | State::Owned { .. })) => return Ok(Taken::MaybeAfterDrain),
                Some(_) => return Err(AllocError::NotFree(pfn)),
                None => return Err(AllocError::Foreign(pfn)),
            }
            // When Linux isolates a free block, Linux compares the free memory with the min watermark plus
            // the block's size (spec §1.8).
            let mark = locked.body.marks.unboosted(Watermark::Min).saturating_add(u64::from(order.frames()));
            locked.update_gauge();
            let is_bound = !request.ignores_watermarks();
            if is_bound && !locked.body.is_watermark_ok(Order::ZERO, mark, ZoneKind::Dma, AllocFlags::CMA) {
                return Err(AllocError::OutOfMemory { order });
            }
            if !locked.take_at(frame, order) {
                return Ok(Taken::MaybeAfterDrain);
            }
            locked.body.frames.mark_allocated(frame, order, request.migratetype);
            locked.buddy.stats.direct_alloc += 1;
            locked.buddy.stats.direct_pages += u64::from(order.frames());
            locked.buddy.stats.pgalloc += u64::from(order.frames());
            Ok(Taken::Yes)
        })
    }

    /// Allocates exactly `frames` contiguous frames. The request's order is ignored. Free the frames with
    /// [`free_range`](Self::free_range), all at once or in parts.
    ///
    /// # Errors
    /// The errors of [`FrameAllocator::alloc_exact`].
    pub fn alloc_exact(&self, cpu: CpuId, frames: u64, request: &Request) -> Result<Pfn, AllocError> {
        FrameAllocator::alloc_exact(self, cpu, frames, request)
    }

    /// Frees the frames of a range, which may be whole blocks or parts of blocks. If a block extends beyond
    /// the range, the block's frames outside the range stay allocated.
    ///
    /// # Errors
    /// [`FreeError::BadRange`] for a range without frames. If a frame is not allocated, the error names the
    /// first frame that is not allocated, and nothing is freed. Race: another CPU frees parts of the range at
    /// the same time. Both CPUs may free some frames, and one of the CPUs gets the error.
    pub fn free_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        if pfns.is_empty() {
            return Err(FreeError::BadRange(Pfn(pfns.start), Pfn(pfns.end)));
        }
        self.for_each_allocated(&pfns, |_, _, _| Ok(()))?;
        self.for_each_allocated(&pfns, |zone, head, order| {
            let start = zone.body.span.pfn(head).0;
            let end = start + u64::from(order.frames());
            let inside = start.max(pfns.start)..end.min(pfns.end);
            if (inside.start, inside.end) != (start, end) {
                self.split_allocated(cpu, zone, head, order, &inside)?;
            }
            for (pfn, order) in blocks_of(inside) {
                self.free_with(cpu, pfn, order, FreeTraits::default())?;
            }
            Ok(())
        })
    }

    /// Splits the blocks of a range into single frames (Linux's `split_page`), so that the caller can free
    /// the frames one by one. A block that extends beyond the range is split completely.
    ///
    /// # Errors
    /// [`FreeError::BadRange`] for a range without frames. If a frame is not allocated, the error names the
    /// first frame that is not allocated, and nothing is split. If another CPU frees parts of the range at
    /// the same time, some blocks may be split before the error.
    pub fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        if pfns.is_empty() {
            return Err(FreeError::BadRange(Pfn(pfns.start), Pfn(pfns.end)));
        }
        self.for_each_allocated(&pfns, |_, _, _| Ok(()))?;
        self.for_each_allocated(&pfns, |zone, head, order| {
            if order == Order::ZERO {
                return Ok(());
            }
            let start = zone.body.span.pfn(head).0;
            let single = |part: Range<u64>| part.map(|pfn| (Pfn(pfn), Order::ZERO));
            self.cut_allocated(cpu, zone, head, order, single(start..start + u64::from(order.frames())))
        })
    }

    /// Visits the allocated blocks that overlap a range, in ascending order. Fails at the first frame that is
    /// not allocated.
    fn for_each_allocated(
        &self,
        pfns: &Range<u64>,
        mut visit: impl FnMut(&Zone<'a, P>, FrameIndex, Order) -> Result<(), FreeError>,
    ) -> Result<(), FreeError> {
        let mut at = pfns.start;
        while at < pfns.end {
            let pfn = Pfn(at);
            let (zone, frame) = self.locate(pfn).ok_or(FreeError::Foreign(pfn))?;
            match zone.body.frames.covering_block(frame) {
                Some((head, State::Allocated { order, .. })) => {
                    at = zone.body.span.pfn(head).0 + u64::from(order.frames());
                    visit(zone, head, order)?;
                }
                Some((_, State::Leaked { .. })) => return Err(FreeError::Leaked(pfn)),
                Some(_) => return Err(FreeError::DoubleFree(pfn)),
                None => return Err(FreeError::Foreign(pfn)),
            }
        }
        Ok(())
    }

    /// Splits one allocated block into several blocks, so that no block crosses an end of `inside`.
    fn split_allocated(
        &self,
        cpu: CpuId,
        zone: &Zone<'_, P>,
        head: FrameIndex,
        order: Order,
        inside: &Range<u64>,
    ) -> Result<(), FreeError> {
        let start = zone.body.span.pfn(head).0;
        let end = start + u64::from(order.frames());
        let parts = [start..inside.start, inside.clone(), inside.end..end];
        self.cut_allocated(cpu, zone, head, order, parts.into_iter().flat_map(blocks_of))
    }

    /// Splits one allocated block into `blocks`, which together cover the whole block.
    fn cut_allocated(
        &self,
        cpu: CpuId,
        zone: &Zone<'_, P>,
        head: FrameIndex,
        order: Order,
        blocks: impl Iterator<Item = (Pfn, Order)>,
    ) -> Result<(), FreeError> {
        let frames = &zone.body.frames;
        let movable = matches!(frames.state(head), State::Allocated { movable: true, .. });
        // Race: another CPU frees the whole block meanwhile. This CPU claims the block until the block is
        // cut, so the other CPU's free fails.
        frames.claim(head, order).map_err(|found| refusal(zone, head, order, found))?;
        // Operations that read many frames, such as counting a pageblock's use, hold the zone's lock. This
        // CPU holds the lock too, so that an operation that reads many frames sees either the whole block or
        // all its parts.
        zone.with_lock(&self.platform, cpu, |locked| {
            if !matches!(frames.state(head), State::Cached { .. }) {
                // Race: another CPU marked the block bad after this CPU had claimed it.
                locked.leak(head, order, FoundAt::Free);
                return Err(FreeError::Leaked(zone.body.span.pfn(head)));
            }
            locked.buddy.stats.splits += 1;
            for (pfn, order) in blocks {
                if let Some(frame) = zone.body.span.index(pfn) {
                    frames.set_state(frame, State::Allocated { order, movable });
                }
            }
            Ok(())
        })
    }
}

/// The largest aligned blocks that make up a range.
pub(super) fn blocks_of(pfns: Range<u64>) -> impl Iterator<Item = (Pfn, Order)> {
    let mut at = pfns.start;
    core::iter::from_fn(move || {
        let left = pfns.end.checked_sub(at).filter(|left| *left > 0)?;
        let order = (at.trailing_zeros() as usize).min(left.ilog2() as usize).min(MAX_ORDER);
        let block = (Pfn(at), Order::from_index(order));
        at += 1 << order;
        Some(block)
    })
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_range_is_cut_into_the_largest_aligned_blocks() {
        let blocks: Vec<_> = blocks_of(5..17).map(|(pfn, order)| (pfn.0, order.get())).collect();
        assert_eq!(blocks, [(5, 0), (6, 1), (8, 3), (16, 0)]);
        assert_eq!(blocks_of(7..7).count(), 0);
        assert_eq!(blocks_of(0..4096).count(), 4);
    }
}
