//! What is at one place, as far as one can see while others allocate and free.

use pageset_core::{MAX_ORDER, Order, Pfn};

use super::in_use::FrameUse;
use super::{BlockAllocator, FRAMES};
use crate::state::{Phase, State};

impl BlockAllocator<'_> {
    /// The block in use around a frame: its first frame and order. `None` if the frame is free, be it that a CPU keeps it, or no memory
    /// of this allocator. O(frames of a pageblock).
    #[must_use]
    pub fn block_in_use(&self, pfn: Pfn) -> Option<(Pfn, Order)> {
        let (_, index) = self.locate(pfn)?;
        if self.frame_use(index) != FrameUse::InBlock || self.is_kept(pfn) {
            return None;
        }
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        let (before, order) = match state.phase() {
            Phase::Inner => (frame + FRAMES, Order::MAX),
            Phase::Handed => (frame, state.order()),
            _ => {
                let (start, order) = self.block_in_split(block, frame, state);
                (frame - start, order)
            }
        };
        Some((Pfn(pfn.0.checked_sub(before as u64)?), order))
    }

    /// Whether a frame is free. `false` for a frame that a CPU [keeps](crate::RemoteFrees::Kept) for its own requests, until it gives it
    /// back. O(1).
    #[must_use]
    pub fn is_free(&self, pfn: Pfn) -> bool {
        self.locate(pfn).is_some_and(|(_, index)| {
            let (block, frame) = (index / FRAMES, index % FRAMES);
            match self.states[block].get().phase() {
                Phase::Whole | Phase::Spare => true,
                Phase::Idle | Phase::Current => self.free[block].is_free(frame),
                _ => false,
            }
        })
    }

    /// Whether the pageblock of a frame is free as a whole, in service, and nobody's for certain. O(1).
    #[must_use]
    pub fn is_whole(&self, pfn: Pfn) -> bool {
        self.locate(pfn).is_some_and(|(_, index)| {
            let block = index / FRAMES;
            let state = self.states[block].get();
            !state.is_isolated() && self.free_of(block, state) == FRAMES
        })
    }

    /// The largest order of which a block is free. `None` if nothing is. O(frames).
    #[must_use]
    pub fn largest_free_order(&self) -> Option<Order> {
        let is_whole = |block: usize| self.free_of(block, self.states[block].get()) == FRAMES;
        let pairs = (0..self.states.len() / 2).map(|pair| 2 * pair);
        if { pairs }.any(|block| is_whole(block) && is_whole(block + 1)) {
            return Order::new(MAX_ORDER as u8);
        }
        if (0..self.states.len()).any(is_whole) {
            return Some(Order::PAGEBLOCK);
        }
        // A pageblock with a hole has single frames only.
        let may_have = |state: State, order| state.is_open() && (!state.is_holed() || order == Order::ZERO);
        let has = |order: &Order| {
            (0..self.states.len())
                .any(|block| may_have(self.states[block].get(), *order) && self.free[block].has(*order))
        };
        (0..Order::PAGEBLOCK.get()).rev().filter_map(Order::new).find(has)
    }
}
