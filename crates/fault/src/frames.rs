//! Where frames come from: a page-frame allocator, or a bump pointer as the cheapest thing possible.

use core::ops::Range;

use pageset_core::{CpuId, FrameAllocator, FreeError, Order, Pfn, Request};

use crate::atomic::{AtomicU64, Ordering::Relaxed};

/// What a frame is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUse {
    /// Contents of an address space: can be moved.
    Anon,
    /// A page table: stays where it is.
    Table,
}

impl FrameUse {
    /// What an allocator is asked for.
    #[must_use]
    pub const fn request(self, order: Order) -> Request {
        match self {
            Self::Anon => Request::new(order).movable(),
            Self::Table => Request::new(order),
        }
    }
}

/// Hands out blocks of `2^order` frames: what the engine needs of an allocator.
pub trait FrameSource {
    /// All frames it may ever hand out.
    fn span(&self) -> Range<u64>;

    /// Allocates a block, aligned to its size. `None` if there is none.
    fn alloc(&self, cpu: CpuId, order: Order, wanted_for: FrameUse) -> Option<Pfn>;

    /// Puts single frames into the empty slots of `frames`, first to last. Returns how many: fewer if memory is short.
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

    /// Takes a block back.
    ///
    /// # Errors
    /// The block was not handed out. Nothing changes then.
    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError>;

    /// Takes many blocks back.
    ///
    /// # Errors
    /// Why the first block was refused that was. The others are free.
    fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), FreeError> {
        blocks.iter().map(|(pfn, order)| self.free(cpu, *pfn, *order)).fold(Ok(()), Result::and)
    }

    /// Frames handed out and not yet back; `None` if nothing counts them. May be slow. Exact only while nobody allocates.
    fn frames_allocated(&self) -> Option<u64> {
        None
    }
}

/// Every page-frame allocator of the family.
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

/// The cheapest possible allocator: gives frames in ascending order, and never reuses one. It only counts frees.
#[derive(Debug)]
pub struct Bump {
    next: AtomicU64,
    freed: AtomicU64,
    span: Range<u64>,
}

impl Bump {
    /// An allocator of these frames.
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
        // What alignment skipped is never handed out.
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
