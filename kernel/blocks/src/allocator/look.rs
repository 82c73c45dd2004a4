//! Queries about a frame, and about the largest free block. Other CPUs may allocate and free meanwhile.

use pageset_core::{MAX_ORDER, Order, PAGEBLOCK_ORDER, Pfn};

use super::attempt::ATTEMPTS;
use super::{BlockAllocator, FRAMES, head_of};
use crate::access::Access;
use crate::atomic::relax;
use crate::ids::BlockId;
use crate::rows::Use;
use crate::state::Phase;

impl<A: Access> BlockAllocator<'_, A> {
    /// Returns the first frame and the order of the block in use around a frame. Returns `None` if the frame
    /// is free, out of service, or no memory of this allocator, or if a CPU stopped while it changed the
    /// block. The answer does not depend on the type or the reservation of the pageblock, even while a CPU
    /// changes the type or the reservation. O(1).
    #[must_use]
    pub fn block_in_use(&self, pfn: Pfn) -> Option<(Pfn, Order)> {
        let (_, id) = self.locate(pfn)?;
        for _ in 0..ATTEMPTS {
            match self.look_around(id.block(), id.in_block()) {
                // Another CPU is changing the block. The change takes a few exchanges, unless that CPU
                // stopped in the middle.
                Use::Changing => relax(),
                Use::Block(before, order) => return Some((Pfn(pfn.0.checked_sub(before as u64)?), order)),
                Use::Free | Use::Withheld | Use::InsideWithheld => return None,
            }
        }
        None
    }

    /// The use of a frame. For a block in use, also the number of the block's frames before this frame.
    fn look_around(&self, block: BlockId, frame: usize) -> Use {
        let state = self.state(block).get();
        match state.phase() {
            Phase::Block if !state.has_bad() => Use::Block(frame, state.block_order()),
            Phase::SecondHalf if !self.state(head_of(block)).get().has_bad() => {
                Use::Block(frame + FRAMES, Order::MAX)
            }
            Phase::Open | Phase::Changing => match self.rows(block).look(frame) {
                Use::Block(start, order) => Use::Block(frame - start, order),
                other => other,
            },
            Phase::Whole | Phase::Parked => Use::Free,
            Phase::Block | Phase::SecondHalf | Phase::Absent => Use::Withheld,
        }
    }

    /// Whether a frame is free. Also returns `false` while the frame's pageblock opens or becomes whole.
    /// O(1).
    #[must_use]
    pub fn is_free(&self, pfn: Pfn) -> bool {
        self.locate(pfn).is_some_and(|(_, id)| {
            let (block, frame) = (id.block(), id.in_block());
            match self.state(block).get().phase() {
                Phase::Whole | Phase::Parked => true,
                Phase::Open => self.rows(block).look(frame) == Use::Free,
                _ => false,
            }
        })
    }

    /// Whether the pageblock of a frame is free as a whole and in service. O(1).
    #[must_use]
    pub fn is_whole(&self, pfn: Pfn) -> bool {
        self.locate(pfn).is_some_and(|(_, id)| {
            let block = id.block();
            let state = self.state(block).get();
            let is_free = state.phase() == Phase::Open && self.rows(block).is_free();
            !state.is_isolated() && (state.phase() == Phase::Whole || is_free)
        })
    }

    /// The largest order that has a free block. Returns `None` if no frame is free. O(pageblocks).
    #[must_use]
    pub fn largest_free_order(&self) -> Option<Order> {
        let blocks = || (0..self.states.len()).map(BlockId);
        let is_whole = |block: BlockId| {
            let state = self.state(block).get();
            let is_whole = state.phase() == Phase::Whole && !state.is_isolated();
            is_whole || state.gives() && self.rows(block).is_free()
        };
        if blocks().step_by(2).any(|block| is_whole(block) && is_whole(block.after(1))) {
            return Order::new(MAX_ORDER as u8);
        }
        let of_block = |block: BlockId| match self.state(block).get() {
            _ if is_whole(block) => Some(PAGEBLOCK_ORDER),
            state if state.gives() => self.rows(block).largest_free(),
            _ => None,
        };
        let largest = blocks().filter_map(of_block).max()?;
        Order::new(largest as u8)
    }
}
