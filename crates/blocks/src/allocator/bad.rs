//! Frames that cannot be trusted: out of service for good.

use pageset_core::{CpuId, FreeError, MigrateType, Order, Pfn};

use super::{BlockAllocator, FRAMES, head_of};
use crate::atomic::relax;
use crate::bad_bits::BadBits;
use crate::free_bits::WORD_FRAMES;
use crate::stack::BlockIndex;
use crate::state::{Phase, State};
use crate::zone::Zone;

/// How often to look again at a pageblock that others change at this moment. Each of them needs some exchanges only, so this
/// many fail if one of them stopped in the middle.
const ATTEMPTS: usize = 1000;

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    Done,
    /// Somebody changes the pageblock.
    Again,
}

impl BlockAllocator<'_> {
    /// Takes a frame out of service: alone and at once if it is free, otherwise with the block that it is part of, which cannot be
    /// freed any more. Memory that hardware reported as failing is the usual reason. (A block that another CPU frees at this very
    /// moment may be handed out once more, and goes out of service when it is freed then.)
    ///
    /// # Errors
    /// [`FreeError::Foreign`] if the frame is not memory of this allocator, [`FreeError::Leaked`] if it is out of service already,
    /// [`FreeError::BadCpu`] for an unknown CPU. [`FreeError::Busy`] if another CPU is in the middle of changing the pageblock
    /// and does not go on: try again. [`FreeError::NoRoom`] if more pageblocks have bad frames than
    /// [`Tables::bad`](crate::Tables::bad) has entries.
    pub fn mark_bad(&self, cpu: CpuId, pfn: Pfn) -> Result<(), FreeError> {
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        let (zone, index) = self.locate(pfn).ok_or(FreeError::Foreign(pfn))?;
        if self.is_hole(index) {
            return Err(FreeError::Foreign(pfn));
        }
        // Free frames that CPUs keep for themselves are in use as far as their pageblocks know.
        self.give_back_of_all(zone);
        // Before anything changes, since afterwards nothing may fail.
        BadBits::entry(&self.bad, index / FRAMES).ok_or(FreeError::NoRoom(pfn))?;
        for _ in 0..ATTEMPTS {
            if self.try_mark_bad(cpu, zone, index, pfn)? == Attempt::Done {
                return Ok(());
            }
            relax();
        }
        Err(FreeError::Busy(pfn))
    }

    fn try_mark_bad(&self, cpu: CpuId, zone: &Zone, index: usize, pfn: Pfn) -> Result<Attempt, FreeError> {
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        if self.is_bad(block, frame, state) {
            return Err(FreeError::Leaked(pfn));
        }
        let done = match state.phase() {
            Phase::Absent => return Err(FreeError::Foreign(pfn)),
            Phase::Whole => self.claim_whole_at(zone, block, 1) && self.open_without(cpu, block, frame),
            Phase::Spare => {
                self.states[block].change(Phase::Spare, Phase::Whole) && self.open_without(cpu, block, frame)
            }
            Phase::Handed => self.mark_handed(block, state),
            Phase::Inner => {
                let head = self.states[head_of(block)].get();
                // Who frees a part of it makes two blocks of it first.
                head.order() > Order::PAGEBLOCK && self.mark_handed(head_of(block), head)
            }
            Phase::Changing => false,
            Phase::Idle | Phase::Current if state.is_holed() && self.tails[block].is_tail(frame) => {
                return Err(FreeError::Foreign(pfn));
            }
            Phase::Idle | Phase::Current if self.free[block].is_free(frame) => {
                self.mark_free(block, frame, state)
            }
            Phase::Idle | Phase::Current => self.mark_used(block, frame, state),
        };
        Ok(if done { Attempt::Done } else { Attempt::Again })
    }

    fn mark_bits(&self, block: BlockIndex, frames: core::ops::Range<usize>) {
        let entry = BadBits::entry(&self.bad, block);
        debug_assert!(entry.is_some(), "there was an entry before");
        entry.into_iter().for_each(|entry| entry.mark(frames.clone()));
    }

    /// No frame of a pageblock is bad.
    pub(super) fn clear_bad(&self, block: BlockIndex) {
        BadBits::of(&self.bad, block).into_iter().for_each(BadBits::clear);
    }

    /// Whether a frame is out of service, alone or with the block around it.
    pub(super) fn is_bad(&self, block: BlockIndex, frame: usize, state: State) -> bool {
        match state.phase() {
            Phase::Handed => state.has_bad(),
            // If it is no pair any more, its second half is about to be known as another block.
            Phase::Inner => {
                let head = self.states[head_of(block)].get();
                head.phase() == Phase::Handed && head.order() > Order::PAGEBLOCK && head.has_bad()
            }
            Phase::Idle | Phase::Current | Phase::Changing => {
                state.has_bad() && BadBits::of(&self.bad, block).is_some_and(|bad| bad.is_bad(frame))
            }
            Phase::Absent | Phase::Whole | Phase::Spare => false,
        }
    }

    /// A pageblock that the caller has for itself is split, without one frame.
    fn open_without(&self, cpu: CpuId, block: BlockIndex, frame: usize) -> bool {
        let split = State::split(Order::ZERO, MigrateType::Movable).of_owner(cpu);
        self.mark_bits(block, frame..frame + 1);
        if !self.turn_into(block, |state| split.in_phase(Phase::Changing).bad().keeping(state)) {
            self.clear_bad(block);
            return false;
        }
        let is_there = |word: usize| usize::from(word == frame / WORD_FRAMES);
        let free = core::array::from_fn(|word| usize::MAX ^ is_there(word) << (frame % WORD_FRAMES));
        self.end_opening(block, Phase::Idle, free);
        self.settle(block);
        true
    }

    /// A block of a pageblock or two does not come back.
    fn mark_handed(&self, head: BlockIndex, state: State) -> bool {
        let is_same = |now: State| now == state && now.phase() == Phase::Handed;
        self.states[head].update(|now| is_same(now).then(|| now.bad())).is_ok()
    }

    /// A free frame of a split pageblock leaves it.
    fn mark_free(&self, block: BlockIndex, frame: usize, state: State) -> bool {
        let has_single = |state: State| state.order() == Order::ZERO || state.is_mixed();
        if !has_single(state) {
            let _ = self.mix(block);
            return false;
        }
        if !self.free[block].take_at(frame, Order::ZERO) {
            return false;
        }
        // From here on the pageblock stays split, since not all of it is free.
        let now = self.states[block].get();
        if !matches!(now.phase(), Phase::Idle | Phase::Current) || !has_single(now) {
            self.return_frames(block, frame, Order::ZERO);
            return false;
        }
        if now.is_mixed() {
            // In a pageblock with holes, the same marks say where these are.
            self.begin_block(block, frame, Order::ZERO);
        }
        self.mark_bits(block, frame..frame + 1);
        self.states[block].update(|state| Some(state.bad())).is_ok()
    }

    /// The block in use around a frame does not come back.
    fn mark_used(&self, block: BlockIndex, frame: usize, state: State) -> bool {
        let (start, order) = self.block_in_split(block, frame, state);
        // While its blocks are cut, one cannot say where this one ends.
        let is_same = |now: State| now.linked(false) == state.linked(false) && !now.is_being_cut();
        if self.states[block].update(|now| is_same(now).then(|| now.bad())).is_err() {
            return false;
        }
        self.mark_bits(block, start..start + order.frames() as usize);
        true
    }
}
