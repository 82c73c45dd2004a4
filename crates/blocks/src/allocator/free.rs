//! A free: a bit is set, whoever frees.

use pageset_core::{CpuId, FreeError, Order, Pfn, ZoneId};

use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::Wanted;
use crate::free_bits::{Left, WORD_FRAMES};
use crate::state::{Phase, State};

impl BlockAllocator<'_> {
    /// Frees a block.
    ///
    /// # Errors
    /// [`FreeError`] if it is no block of this order that is in use. The allocator is unchanged then.
    #[inline]
    pub fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let Some((zone, index)) = self.locate(pfn) else { return Err(FreeError::Foreign(pfn)) };
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        let is_aligned = frame & (order.frames() as usize - 1) == 0;
        if order < Order::PAGEBLOCK && state.takes_back(order) && is_aligned {
            if state.owner() != cpu && self.keep(cpu, zone.id, state, order, index) {
                return Ok(());
            }
            self.note_line(block, cpu);
            let free = self.free[block].put(frame, order).map_err(|_| FreeError::DoubleFree(pfn))?;
            // After the bit was set: whoever makes the pageblock idle now sees the bit, or this sees that it is idle.
            let state = self.states[block].get();
            if state.phase() == Phase::Idle {
                let left = Left::of_word(free, order);
                if left == Left::Few && state.owner() == cpu && self.is_known(cpu) {
                    let wanted = Wanted { order, migratetype: state.migratetype() };
                    self.lists_at(zone.id, cpu).cursor(wanted).note_freed(block, frame / WORD_FRAMES);
                } else {
                    self.note_free_to_idle(block, state, left);
                }
            }
            return Ok(());
        }
        if order == Order::PAGEBLOCK && frame == 0 && self.free_pageblock(cpu, zone.id, block) {
            return Ok(());
        }
        self.free_slow(cpu, pfn, order)
    }

    /// Looks after a pageblock to which frames came back, if nobody else does. `free` is the word they came to.
    #[inline]
    pub(super) fn note_free(&self, block: usize, order: Order, free: usize) {
        let state = self.states[block].get();
        if state.phase() == Phase::Idle {
            self.note_free_to_idle(block, state, Left::of_word(free, order));
        }
    }

    fn note_free_to_idle(&self, block: usize, state: State, left: Left) {
        let is_news = match left {
            Left::Few => false,
            Left::Many => !state.is_linked(),
            Left::All => true,
        };
        if is_news {
            self.settle(block);
        }
    }

    /// Frees of blocks that are not what their pageblock is split into: whole pageblocks, and mistakes.
    #[cold]
    fn free_slow(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let Some((zone, index)) = self.locate(pfn) else { return Err(FreeError::Foreign(pfn)) };
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        match state.phase() {
            Phase::Absent => Err(FreeError::Foreign(pfn)),
            _ if self.is_bad(block, frame, state) => Err(FreeError::Leaked(pfn)),
            Phase::Whole | Phase::Spare => Err(FreeError::DoubleFree(pfn)),
            Phase::Inner => Err(FreeError::NotABlock(pfn)),
            Phase::Handed if frame != 0 => Err(FreeError::NotABlock(pfn)),
            Phase::Handed if state.order() != order => {
                Err(FreeError::WrongOrder { pfn, given: order, allocated: state.order() })
            }
            Phase::Handed if self.free_whole(cpu, zone.id, block, order) => Ok(()),
            Phase::Handed => Err(FreeError::DoubleFree(pfn)),
            Phase::Idle | Phase::Current | Phase::Changing if state.is_mixed() => {
                self.free_mixed(pfn, index, order)
            }
            Phase::Idle | Phase::Current | Phase::Changing if state.is_holed() => {
                self.free_in_holed(cpu, zone.id, pfn, index, order)
            }
            Phase::Idle | Phase::Current | Phase::Changing
                if state.order() == order && pfn.is_aligned(order) =>
            {
                let free = self.free[block].put(frame, order).map_err(|_| FreeError::DoubleFree(pfn))?;
                self.note_free(block, order, free);
                Ok(())
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
    fn free_in_holed(
        &self,
        cpu: CpuId,
        zone: ZoneId,
        pfn: Pfn,
        index: usize,
        order: Order,
    ) -> Result<(), FreeError> {
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
        let state = self.states[block].get();
        if state.owner() != cpu && !state.is_isolated() && self.keep(cpu, zone, state, order, index) {
            return Ok(());
        }
        self.note_line(block, cpu);
        let free = self.free[block].put(frame, order).map_err(|_| FreeError::DoubleFree(pfn))?;
        self.note_free(block, order, free);
        Ok(())
    }
}
