//! Takes bad frames out of service for good.

use pageset_core::{CpuId, FreeError, MigrateType, Order, Pfn};

use super::attempt::Attempt;
use super::{BlockAllocator, head_of};
use crate::access::Access;
use crate::bad_bits::BadBits;
use crate::ids::{BlockId, FrameId};
use crate::row::ROW_FRAMES;
use crate::rows::Use;
use crate::state::{Phase, State};

impl<A: Access> BlockAllocator<'_, A> {
    /// Takes a frame out of service, usually because the hardware reported it as failing. A free frame goes
    /// out of service alone. A frame in use goes out of service with its whole block, which cannot be freed
    /// any more.
    ///
    /// # Errors
    /// [`FreeError::Foreign`] if the frame is not memory of this allocator, [`FreeError::Leaked`] if it is
    /// out of service already, [`FreeError::BadCpu`] for an unknown CPU. [`FreeError::Busy`] if another CPU
    /// is changing the pageblock and has not finished: try again. [`FreeError::NoRoom`] if
    /// [`TableCounts::bad`](crate::TableCounts::bad) other pageblocks have bad frames already.
    pub fn mark_bad(&self, cpu: CpuId, pfn: Pfn) -> Result<(), FreeError> {
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        let (_, id) = self.locate(pfn).ok_or(FreeError::Foreign(pfn))?;
        if self.is_hole(id) {
            return Err(FreeError::Foreign(pfn));
        }
        // Claim the entry before anything changes, because nothing may fail afterwards.
        BadBits::entry(&self.bad, id.block()).ok_or(FreeError::NoRoom(pfn))?;
        self.until_done(pfn, || self.try_mark_bad(id, pfn))
    }

    fn try_mark_bad(&self, id: FrameId, pfn: Pfn) -> Result<Attempt, FreeError> {
        let (block, frame) = (id.block(), id.in_block());
        let state = self.state(block).get();
        if self.is_bad(block, frame, state) {
            return Err(FreeError::Leaked(pfn));
        }
        let done = match state.phase() {
            Phase::Absent => return Err(FreeError::Foreign(pfn)),
            Phase::Whole => {
                self.open_if_whole(block, MigrateType::Movable);
                false
            }
            Phase::Parked => self.unpark(block),
            Phase::Block => self.mark_block(block, state),
            Phase::SecondHalf => {
                let head = self.state(head_of(block)).get();
                // Race: another CPU frees a part of the pair, and first cuts the pair into two blocks. So
                // check that both halves still are one block.
                head.block_order() > Order::PAGEBLOCK && self.mark_block(head_of(block), head)
            }
            Phase::Changing => false,
            Phase::Open => match self.rows(block).look(frame) {
                Use::Free => self.mark_free(block, frame),
                Use::Block(start, _) => self.mark_used(block, start),
                Use::InsideWithheld => return Err(FreeError::Leaked(pfn)),
                Use::Withheld if state.is_holed() => return Err(FreeError::Foreign(pfn)),
                // Another CPU is freeing, taking or marking the frame: look again.
                Use::Withheld | Use::Changing => false,
            },
        };
        Ok(if done { Attempt::Done } else { Attempt::Again })
    }

    fn mark_bits(&self, block: BlockId, frames: core::ops::Range<usize>) {
        let entry = BadBits::entry(&self.bad, block);
        debug_assert!(entry.is_some(), "there was an entry before");
        entry.into_iter().for_each(|entry| entry.mark(frames.clone()));
    }

    /// Whether a frame is out of service, alone or with the block around it.
    pub(super) fn is_bad(&self, block: BlockId, frame: usize, state: State) -> bool {
        match state.phase() {
            Phase::Block => state.has_bad(),
            // Race: another CPU cuts the pair, and changes the state of the first half before the state of
            // the second half. So the state of the first half may already name a block of one pageblock. If
            // the first half's state names one pageblock, the second half is a block of its own.
            Phase::SecondHalf => {
                let head = self.state(head_of(block)).get();
                head.phase() == Phase::Block && head.block_order() > Order::PAGEBLOCK && head.has_bad()
            }
            Phase::Open | Phase::Changing => {
                state.has_bad() && BadBits::of(&self.bad, block).is_some_and(|bad| bad.is_bad(frame))
            }
            Phase::Absent | Phase::Whole | Phase::Parked => false,
        }
    }

    /// Marks a block of one or two pageblocks as bad. The block stays out of service for good.
    fn mark_block(&self, head: BlockId, state: State) -> bool {
        let is_same = |now: State| now == state && now.phase() == Phase::Block;
        self.state(head).update::<A>(|now| is_same(now).then(|| now.bad())).is_ok()
    }

    /// Opens a parked pageblock (free and out of service). The pageblock stays out of service. Returns
    /// `false`, so that the caller looks again.
    fn unpark(&self, block: BlockId) -> bool {
        if self.state(block).change::<A>(Phase::Parked, Phase::Changing) {
            self.rows(block).open();
            self.state(block)
                .update::<A>(|state| Some(State::open(MigrateType::Movable).isolated(state.is_isolated())))
                .ok();
            self.settle(block);
        }
        false
    }

    /// Withholds a free frame of an open pageblock. The pageblock then stays open, because it never becomes
    /// free as a whole.
    fn mark_free(&self, block: BlockId, frame: usize) -> bool {
        if !self.rows(block).withhold(frame / ROW_FRAMES, 1 << (frame % ROW_FRAMES)) {
            return false;
        }
        self.mark_bits(block, frame..frame + 1);
        self.note_bad(block, Order::ZERO);
        true
    }

    /// Withholds the block in use that begins at a frame.
    fn mark_used(&self, block: BlockId, start: usize) -> bool {
        // Race: since the caller looked, another CPU may have made another block begin at this frame. So take
        // the size from the word that the exchange replaced.
        let Some(frames) = self.rows(block).withhold_block(start) else { return false };
        self.mark_bits(block, start..start + frames);
        self.state(block).update::<A>(|state| Some(state.bad())).ok();
        true
    }

    fn note_bad(&self, block: BlockId, taken: Order) {
        self.state(block).update::<A>(|state| Some(state.bad())).ok();
        self.note_taken(block, taken.frames());
        self.settle(block);
    }
}
