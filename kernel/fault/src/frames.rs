//! The sources of an engine's frames: any page-frame allocator, or [`Bump`]. A `Bump` hands out each frame
//! once.

use core::ops::Range;

use pageset_core::{CpuId, FrameAllocator, FreeError, Order, Pfn, Request};

use crate::atomic::{AtomicU64, Ordering::Relaxed};

/// The purpose of an allocated frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUse {
    /// The frame holds a page of an address space, and is movable.
    Anon,
    /// The frame holds a page table, and is not movable.
    Table,
}

impl FrameUse {
    /// The request that asks the allocator of `pageset-core` for a block of this order and use.
    #[must_use]
    pub const fn request(self, order: Order) -> Request {
        match self {
            Self::Anon => Request::new(order).movable(),
            Self::Table => Request::new(order),
        }
    }
}

/// A source of blocks of `2^order` frames. The trait has the functions that an engine needs of an allocator.
pub trait FrameSource {
    /// A range of frame numbers that contains every frame of this source.
    fn span(&self) -> Range<u64>;

    /// Allocates a block that begins at a multiple of its size. Returns `None` if no such block is free.
    fn alloc(&self, cpu: CpuId, order: Order, wanted_for: FrameUse) -> Option<Pfn>;

    /// Fills the empty slots of `frames` with single frames, beginning with the first empty slot. Returns the
    /// number of slots that this call filled. If memory is short, some slots stay empty.
    fn alloc_many(&self, cpu: CpuId, wanted_for: FrameUse, frames: &mut [Option<Pfn>]) -> usize {
        let mut got = 0;
        for slot in frames.iter_mut().filter(|slot| slot.is_none()) {
            *slot = self.alloc(cpu, Order::ZERO, wanted_for);
            if slot.is_none() {
                break;
            }
            got += 1;
        }
        got
    }

    /// Takes back a block that this source has allocated.
    ///
    /// # Errors
    /// An error if the source notices that it has not allocated the block. A call that returns an error
    /// changes nothing.
    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError>;

    /// Takes many blocks back.
    ///
    /// # Errors
    /// If the source refuses blocks, the result is the error of the first refused block. The source still
    /// takes back all blocks that the source does not refuse.
    fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), FreeError> {
        blocks.iter().map(|(pfn, order)| self.free(cpu, *pfn, *order)).fold(Ok(()), Result::and)
    }

    /// The number of frames that are allocated now, or `None` if the source cannot count allocated frames.
    /// The call may be slow. The number is exact only while no CPU allocates or frees.
    fn frames_allocated(&self) -> Option<u64> {
        None
    }
}

/// Every `FrameAllocator` is a frame source.
impl<A: FrameAllocator> FrameSource for A {
    fn span(&self) -> Range<u64> {
        FrameAllocator::span(self)
    }

    #[inline]
    fn alloc(&self, cpu: CpuId, order: Order, wanted_for: FrameUse) -> Option<Pfn> {
        FrameAllocator::alloc(self, cpu, &wanted_for.request(order)).ok()
    }

    fn alloc_many(&self, cpu: CpuId, wanted_for: FrameUse, frames: &mut [Option<Pfn>]) -> usize {
        let before = frames.iter().flatten().count();
        self.alloc_bulk(cpu, &wanted_for.request(Order::ZERO), frames).map_or(0, |filled| filled - before)
    }

    #[inline]
    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        FrameAllocator::free(self, cpu, pfn, order)
    }

    fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), FreeError> {
        FrameAllocator::free_batch(self, cpu, blocks).map_err(|(_, error)| error)
    }

    fn frames_allocated(&self) -> Option<u64> {
        self.validate().ok().map(|census| census.allocated)
    }
}

/// A cheap frame source for tests and measurements. A `Bump` hands out frames in ascending order, each frame
/// once. A `Bump` counts freed frames, but never hands out freed frames again. A `Bump` does not notice a
/// frame that is freed twice.
#[derive(Debug)]
pub struct Bump {
    next: AtomicU64,
    freed: AtomicU64,
    span: Range<u64>,
}

impl Bump {
    /// Makes a source that hands out these frames.
    #[must_use]
    pub fn new(span: Range<u64>) -> Self {
        Self { next: AtomicU64::new(span.start), freed: AtomicU64::new(0), span }
    }
}

impl FrameSource for Bump {
    fn span(&self) -> Range<u64> {
        self.span.clone()
    }

    #[inline]
    fn alloc(&self, _: CpuId, order: Order, _: FrameUse) -> Option<Pfn> {
        let frames = u64::from(order.frames());
        let place = |next: u64| {
            let start = next.checked_next_multiple_of(frames)?;
            start.checked_add(frames).filter(|end| *end <= self.span.end).map(|end| (start, end))
        };
        let before = self.next.fetch_update(Relaxed, Relaxed, |next| Some(place(next)?.1)).ok()?;
        // Frames that this call skips for alignment are never used, so count them as freed.
        let (start, _) = place(before)?;
        self.freed.fetch_add(start - before, Relaxed);
        Some(Pfn(start))
    }

    #[inline]
    fn free(&self, _: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        if pfn.0 < self.span.start || pfn.0 >= self.next.load(Relaxed) {
            return Err(FreeError::Foreign(pfn));
        }
        self.freed.fetch_add(u64::from(order.frames()), Relaxed);
        Ok(())
    }

    fn frames_allocated(&self) -> Option<u64> {
        (self.next.load(Relaxed) - self.span.start).checked_sub(self.freed.load(Relaxed))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_bump_allocator_aligns_counts_and_ends() {
        let frames = Bump::new(5..32);
        let order = Order::new(3).expect("an order");
        let alloc = |order| frames.alloc(CpuId(0), order, FrameUse::Anon);
        assert_eq!(alloc(Order::ZERO), Some(Pfn(5)));
        assert_eq!(alloc(order), Some(Pfn(8)));
        assert_eq!(frames.frames_allocated(), Some(9));
        assert_eq!(frames.free(CpuId(0), Pfn(8), order), Ok(()));
        assert_eq!(frames.free(CpuId(0), Pfn(30), order), Err(FreeError::Foreign(Pfn(30))));
        assert_eq!(frames.frames_allocated(), Some(1));
        assert_eq!((alloc(order), alloc(order), alloc(order)), (Some(Pfn(16)), Some(Pfn(24)), None));
    }
}
