//! The one edge to `pageset-blocks`: the base, which has every frame that is in no array, no depot and nobody's hands.
//!
//! The pool names frames by 32 bits from its start; so does the allocator, by 64. The allocator knows one CPU only: what CPUs
//! have for themselves is above it, in the arrays and the depot.

use std::ops::Range;

use pageset_blocks::{BlockAllocator, BlockCounters, WholeUse};
pub(crate) use pageset_core::AllocError as BaseError;
use pageset_core::{
    Config, CpuId, FreeError, NodeId, Order, PAGEBLOCK_FRAMES, Pfn, Request, RequestTraits, Violation,
    Watermarks, ZoneConfig, ZoneId, ZoneKind,
};

use crate::BuildError;
use crate::tables::Allocator;

/// The CPU that everybody is.
const CPU: CpuId = CpuId(0);
/// The zone that has all frames.
const ZONE: ZoneId = ZoneId(0);

/// The allocator of the pool's frames.
pub(crate) struct Base {
    allocator: Allocator,
    /// Bytes of its tables.
    bytes: usize,
    /// Frames behind the pool's end that complete its last pageblock: in use for ever.
    beyond: u64,
}

/// A request for a block, though it be the last one that is free. All memory is of one type, so that nothing is stolen from
/// anybody.
#[inline]
const fn request(order: Order) -> Request {
    Request::new(order).movable().with(RequestTraits::NO_WATERMARKS)
}

fn pfn(frame: u32) -> Pfn {
    Pfn(u64::from(frame))
}

impl Base {
    /// An allocator of so many frames, all of them free.
    pub(crate) fn new(frames: u64) -> Result<Self, BuildError> {
        let pageblock = u64::from(PAGEBLOCK_FRAMES);
        // Of a pageblock with a hole, the allocator hands out single frames only. The last one has none.
        let end = frames.next_multiple_of(pageblock);
        let region = [0..end];
        let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..end, regions: &region }];
        let config = Config::new(&zones, &[NodeId(0)]);
        let (allocator, bytes) = Allocator::with_tables(&config, |tables| {
            // What lies at the end is given back first.
            let allocator = BlockAllocator::new(&config, tables)?.with_whole_use(WholeUse::LowestFirst);
            // A pool keeps no reserve: its users may have every page of it.
            allocator.set_watermarks(ZONE, Watermarks::default())?;
            Ok(allocator)
        })?;
        let base = Self { allocator, bytes, beyond: end - frames };
        if base.beyond > 0 {
            let first = (end - pageblock) as u32;
            let taken = base.alloc_at(first, Order::PAGEBLOCK);
            debug_assert_eq!(taken, Ok(()), "nobody has it yet");
            base.release_range(first..frames as u32);
        }
        Ok(base)
    }

    fn allocator(&self) -> &BlockAllocator<'_> {
        self.allocator.get()
    }

    /// Allocates a block: its first frame. `None` if there is none.
    pub(crate) fn alloc(&self, order: Order) -> Option<u32> {
        let block = self.allocator().alloc(CPU, &request(order));
        block.ok().map(|pfn| pfn.0 as u32)
    }

    /// Allocates the block at this place.
    pub(crate) fn alloc_at(&self, frame: u32, order: Order) -> Result<(), BaseError> {
        self.allocator().alloc_at(CPU, pfn(frame), &request(order))
    }

    /// Frees a block.
    pub(crate) fn free(&self, frame: u32, order: Order) -> Result<(), FreeError> {
        self.allocator().free(CPU, pfn(frame), order)
    }

    /// Frees frames, whatever blocks they are or are parts of. While another thread changes the same pageblock, this waits for
    /// it.
    pub(crate) fn free_range(&self, frames: Range<u32>) -> Result<(), FreeError> {
        let mut rest = u64::from(frames.start)..u64::from(frames.end);
        while !rest.is_empty() {
            match self.allocator().free_range(CPU, rest.clone()) {
                Err(FreeError::Busy(pfn)) => rest.start = pfn.0,
                outcome => return outcome,
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Puts back a block that nobody has.
    pub(crate) fn release(&self, frame: u32, order: Order) {
        let outcome = self.free(frame, order);
        debug_assert_eq!(outcome, Ok(()), "a block that was taken out is ours to put back");
    }

    /// As [`release`](Self::release), for frames, whatever blocks they are parts of: whoever has the others keeps them.
    pub(crate) fn release_range(&self, frames: Range<u32>) {
        let outcome = self.free_range(frames);
        debug_assert_eq!(outcome, Ok(()), "the base takes frames that nobody has for used");
    }

    /// The block in use around a frame, as far as one can see: its first frame and order.
    pub(crate) fn block_in_use(&self, frame: u32) -> Option<(u32, Order)> {
        self.allocator().block_in_use(pfn(frame)).map(|(first, order)| (first.0 as u32, order))
    }

    /// Whether a frame is free, as far as one can see.
    pub(crate) fn is_free(&self, frame: u32) -> bool {
        self.allocator().is_free(pfn(frame))
    }

    /// Whether the pageblock that begins here is free as a whole, as far as one can see.
    pub(crate) fn is_whole(&self, frame: u32) -> bool {
        self.allocator().is_whole(pfn(frame))
    }

    /// Frames that are free.
    pub(crate) fn free_frames(&self) -> u64 {
        self.allocator().zones().map(|zone| zone.free).sum()
    }

    /// The largest order of which a block is free.
    pub(crate) fn largest_free_order(&self) -> Option<Order> {
        self.allocator().largest_free_order()
    }

    /// What it did.
    pub(crate) fn counters(&self) -> BlockCounters {
        self.allocator().counters()
    }

    /// Bytes of metadata.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Proves that no frame is lost or doubled. Returns how many are in use.
    pub(crate) fn validate(&self) -> Result<u64, Violation> {
        let census = self.allocator().validate()?;
        Ok(census.allocated.saturating_sub(self.beyond))
    }
}
