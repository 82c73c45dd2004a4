//! A free: a bit is set, whoever frees.

use pageset_core::{CpuId, FreeError, Order, PAGEBLOCK_ORDER, Pfn};

use super::{BlockAllocator, FRAMES};
use crate::free_bits::Left;
use crate::state::{Phase, State};

impl BlockAllocator<'_> {
    /// Frees a block.
    ///
    /// # Errors
    /// [`FreeError`] if it is no block of this order that is in use. The allocator is unchanged then.
    #[inline]
    pub fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let Some((_, index)) = self.locate(pfn) else { return Err(FreeError::Foreign(pfn)) };
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        if state.is_split_into(order) && frame & (order.frames() as usize - 1) == 0 {
            let left = self.free[block].put(frame, order).map_err(|_| FreeError::DoubleFree(pfn))?;
            self.note_free(block, left);
            return Ok(());
        }
        self.free_slow(cpu, pfn, order)
    }

    /// Looks after a pageblock to which frames came back, if nobody else does.
    #[inline]
    pub(super) fn note_free(&self, block: usize, left: Left) {
        // After the bit was set: whoever makes the pageblock idle now sees the bit, or this sees that it is idle.
        let state = self.states[block].get();
        if state.phase() == Phase::Idle && (!state.is_linked() || left == Left::FullWords) {
            self.settle(block);
        }
    }

    /// Frees of blocks that are not what their pageblock is split into: whole pageblocks, and mistakes.
    #[cold]
    fn free_slow(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let Some((_, index)) = self.locate(pfn) else { return Err(FreeError::Foreign(pfn)) };
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        match state.phase() {
            Phase::Absent => Err(FreeError::Foreign(pfn)),
            Phase::Whole | Phase::Spare => Err(FreeError::DoubleFree(pfn)),
            Phase::Inner => Err(FreeError::NotABlock(pfn)),
            Phase::Handed if frame != 0 => Err(FreeError::NotABlock(pfn)),
            Phase::Handed if state.order() != order => {
                Err(FreeError::WrongOrder { pfn, given: order, allocated: state.order() })
            }
            Phase::Handed => self.free_whole(cpu, block, order).ok_or(FreeError::DoubleFree(pfn)),
            Phase::Idle | Phase::Current | Phase::Changing if state.is_mixed() => {
                self.free_mixed(pfn, index, order)
            }
            Phase::Idle | Phase::Current | Phase::Changing if state.is_holed() => {
                self.free_in_holed(pfn, index, order)
            }
            Phase::Idle | Phase::Current | Phase::Changing => {
                let start = frame & !(state.order().frames() as usize - 1);
                Err(if self.free[block].is_free(start) {
                    FreeError::DoubleFree(pfn)
                } else if start != frame {
                    FreeError::NotABlock(pfn)
                } else {
                    FreeError::WrongOrder { pfn, given: order, allocated: state.order() }
                })
            }
        }
    }

    /// Frees a frame of a pageblock that has holes.
    fn free_in_holed(&self, pfn: Pfn, index: usize, order: Order) -> Result<(), FreeError> {
        let (block, frame) = (index / FRAMES, index % FRAMES);
        if self.tails[block].is_tail(frame) {
            return Err(FreeError::Foreign(pfn));
        }
        if self.free[block].is_free(frame) {
            return Err(FreeError::DoubleFree(pfn));
        }
        if order != Order::ZERO {
            return Err(FreeError::WrongOrder { pfn, given: order, allocated: Order::ZERO });
        }
        let left = self.free[block].put(frame, order).map_err(|_| FreeError::DoubleFree(pfn))?;
        self.note_free(block, left);
        Ok(())
    }
}

impl State {
    /// Whether frees of this order need no other look than at the block's bits.
    #[inline]
    pub(super) const fn is_split_into(self, order: Order) -> bool {
        self.phase() as u32 & 0b100 != 0
            && self.phase() as u32 != Phase::Inner as u32
            && self.order().index() == order.index()
            && order.index() < PAGEBLOCK_ORDER
            && !self.is_mixed()
            && !self.is_holed()
    }
}
