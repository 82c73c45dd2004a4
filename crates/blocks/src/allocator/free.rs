//! A free: a bit is set, whoever frees.

use pageset_core::{CpuId, FreeError, Order, Pfn, ZoneId};

use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::Wanted;
use crate::free_bits::{FULL, Left, WORD_FRAMES};
use crate::state::{Phase, State};

impl BlockAllocator<'_> {
    /// Frees a block.
    ///
    /// # Errors
    /// [`FreeError`] if it is no block of this order that is in use. The allocator is unchanged then.
    #[inline]
    pub fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let Some((zone, index)) = self.locate(pfn) else { return self.free_slow(cpu, pfn, order) };
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        let is_aligned = frame & (order.frames() as usize - 1) == 0;
        if order < Order::PAGEBLOCK && state.takes_back(order) && is_aligned {
            if state.owner() != cpu {
                if !self.is_known(cpu) {
                    return Err(FreeError::BadCpu(cpu));
                }
                if self.keep(cpu, zone.id, state, order, index).is_kept(pfn)? {
                    return Ok(());
                }
            }
            self.note_line(block, cpu);
            let free = self.free[block].put(frame, order).map_err(|_| FreeError::DoubleFree(pfn))?;
            // After the bit was set: whoever makes the pageblock idle now sees the bit, or this sees that it is idle.
            let state = self.states[block].get();
            if state.phase() == Phase::Idle {
                let left = Left::of_word(free, order);
                if left == Left::Few
                    && state.owner() == cpu
                    && self.is_known(cpu)
                    && let Some(wanted) = Wanted::of_split(state)
                {
                    self.lists_at(zone.id, cpu).cursor(wanted).note_freed(block, frame / WORD_FRAMES);
                } else {
                    self.note_free_to_idle(block, state, left);
                }
            }
            return Ok(());
        }
        let is_pageblock = order == Order::PAGEBLOCK && frame == 0 && self.is_known(cpu);
        if is_pageblock && self.free_pageblock(cpu, zone.id, block) {
            return Ok(());
        }
        self.free_slow(cpu, pfn, order)
    }

    /// Looks after a pageblock to which frames came back, if nobody else does. `free` is the word they came to.
    #[inline]
    pub(super) fn note_free(&self, block: usize, order: Order, free: usize) {
        let state = self.states[block].get();
        // One that is known already can only become whole, which is sooner seen than how much there is.
        let is_news = || !state.is_linked() || free == FULL;
        if state.phase() == Phase::Idle && is_news() {
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
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        let Some((zone, index)) = self.locate(pfn) else { return Err(FreeError::Foreign(pfn)) };
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        match state.phase() {
            Phase::Absent => Err(FreeError::Foreign(pfn)),
            Phase::Whole | Phase::Spare => Err(FreeError::DoubleFree(pfn)),
            Phase::Inner => Err(FreeError::NotABlock(pfn)),
            Phase::Handed if frame != 0 => Err(FreeError::NotABlock(pfn)),
            Phase::Handed if state.has_bad() => Err(FreeError::Leaked(pfn)),
            Phase::Handed if state.order() != order => {
                Err(FreeError::WrongOrder { pfn, given: order, allocated: state.order() })
            }
            Phase::Handed if self.free_whole(cpu, zone.id, block, order) => Ok(()),
            Phase::Handed => Err(FreeError::DoubleFree(pfn)),
            Phase::Idle | Phase::Current | Phase::Changing if state.is_mixed() => {
                self.free_mixed(cpu, zone.id, pfn, index, order)
            }
            Phase::Idle | Phase::Current | Phase::Changing if state.is_holed() => {
                self.free_in_holed(cpu, zone.id, pfn, index, order)
            }
            Phase::Idle | Phase::Current | Phase::Changing => {
                let allocated = state.split_order();
                let start = frame & !(allocated.frames() as usize - 1);
                if self.free[block].is_free(start) {
                    return Err(FreeError::DoubleFree(pfn));
                }
                if start != frame {
                    return Err(FreeError::NotABlock(pfn));
                }
                if self.is_bad(block, frame, state) {
                    return Err(FreeError::Leaked(pfn));
                }
                if allocated != order {
                    return Err(FreeError::WrongOrder { pfn, given: order, allocated });
                }
                let free = self.free[block].put(frame, order).map_err(|_| FreeError::DoubleFree(pfn))?;
                self.note_free(block, order, free);
                Ok(())
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
        let state = self.states[block].get();
        if self.is_bad(block, frame, state) {
            return Err(FreeError::Leaked(pfn));
        }
        if order != Order::ZERO {
            return Err(FreeError::WrongOrder { pfn, given: order, allocated: Order::ZERO });
        }
        let may_keep = state.owner() != cpu && !state.is_isolated();
        if may_keep && self.keep(cpu, zone, state, order, index).is_kept(pfn)? {
            return Ok(());
        }
        self.note_line(block, cpu);
        let free = self.free[block].put(frame, order).map_err(|_| FreeError::DoubleFree(pfn))?;
        self.note_free(block, order, free);
        Ok(())
    }
}
