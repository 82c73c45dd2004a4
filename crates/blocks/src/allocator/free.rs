//! A free: a bit is set, whoever frees.
//!
//! A CPU looks at the pageblock first. If another CPU frees the same block meanwhile, the pageblock may become whole and be split anew
//! before the first CPU sets its bit. So each CPU looks once more afterwards, and takes back what does not belong there (`note_free`).

use pageset_core::{CpuId, FreeError, Order, Pfn, ZoneId};

use super::in_use::FrameUse;
use super::mixed::LOOKS;
use super::{BlockAllocator, FRAMES};
use crate::atomic::relax;
use crate::cpu_lists::{Wanted, count};
use crate::free_bits::{FULL, IsFree, Left, WORD_FRAMES, WORDS, frames_of};
use crate::stack::BlockIndex;
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
            let Ok(free) = self.free[block].put(frame, order) else {
                return self.put_again(block, frame, order).map_err(|_| FreeError::DoubleFree(pfn));
            };
            // After the bit was set: whoever makes the pageblock idle now sees the bit, or this sees that it is idle.
            let state = self.states[block].get();
            if state.is_current_of(order) {
                return Ok(());
            }
            let left = Left::of_word(free, order);
            if state.takes_back(order)
                && state.phase() == Phase::Idle
                && left == Left::Few
                && state.owner() == cpu
                && self.is_known(cpu)
                && let Some(wanted) = Wanted::of_split(state)
            {
                self.lists_at(zone.id, cpu).cursor(wanted).note_freed(block, frame / WORD_FRAMES);
                return Ok(());
            }
            let back = Back::of_block(frame, order, free);
            return self.note_back(block, order, back, state).map_err(|_| FreeError::DoubleFree(pfn));
        }
        let is_pageblock = order == Order::PAGEBLOCK && frame == 0 && self.is_known(cpu);
        if is_pageblock && self.free_pageblock(cpu, zone.id, block) {
            return Ok(());
        }
        self.free_slow(cpu, pfn, order)
    }

    /// Puts back a block of a split pageblock, and looks after that.
    pub(super) fn put_block(&self, block: BlockIndex, frame: usize, order: Order) -> Result<(), IsFree> {
        let free = self.free[block].put(frame, order)?;
        self.note_free(block, order, Back::of_block(frame, order, free))
    }

    /// Some of the block is free already. If not all of it is, in a pageblock that has no smaller blocks, these are frames that another
    /// CPU is about to [take back](Self::take_back).
    #[cold]
    fn put_again(&self, block: BlockIndex, frame: usize, order: Order) -> Result<(), IsFree> {
        for _ in 0..LOOKS {
            let is_plain = self.states[block].get().takes_back(order);
            if !is_plain || self.free[block].is_block_free(frame, order) {
                break;
            }
            if self.free[block].put(frame, order).is_ok() {
                let free = self.free[block].word(frame / WORD_FRAMES);
                return self.note_free(block, order, Back::of_block(frame, order, free));
            }
            relax();
        }
        Err(IsFree)
    }

    /// Looks after a pageblock to which frames came back as blocks of `order`, if no other CPU does. Error if they were free before: then
    /// they are still there, in a pageblock that can have no such blocks.
    #[inline]
    pub(super) fn note_free(&self, block: BlockIndex, order: Order, back: Back) -> Result<(), IsFree> {
        self.note_back(block, order, back, self.states[block].get())
    }

    /// The same, by the state that the pageblock had afterwards.
    #[inline]
    fn note_back(&self, block: BlockIndex, order: Order, back: Back, state: State) -> Result<(), IsFree> {
        if !state.takes_back(order) && !state.may_get_back(order) {
            // Two CPUs free the last blocks of a pageblock. The other one may see that all is free, and make the pageblock whole, before
            // this one reads its state. Then the frames are not there any more, and this free was right.
            return if self.take_back(block, order, back) { Err(IsFree) } else { Ok(()) };
        }
        // One that is known already can only become whole, which is sooner seen than how much there is.
        let is_news = || !state.is_linked() || back.free == FULL;
        if state.phase() == Phase::Idle && is_news() {
            self.note_free_to_idle(block, state, Left::of_word(back.free, order));
        }
        Ok(())
    }

    /// Frames came back to a pageblock that can have no such blocks: it is free or in use as a whole, or split into larger ones. They
    /// are free no more, unless they are by now as parts of what it is. Returns whether one was that should not be.
    #[cold]
    #[inline(never)]
    pub(super) fn take_back(&self, block: BlockIndex, order: Order, back: Back) -> bool {
        let mut had_any = false;
        let frames = back.frames;
        for word in back.word..back.word + back.words {
            let before = self.free[block].take_those(word, frames);
            let state = self.states[block].get();
            let larger = state.split_order();
            // All of the larger blocks are free: then these are theirs, from when the pageblock was opened.
            let is_theirs = || {
                let around = frames_around(frames, larger);
                state.is_split() && before & around == around
            };
            if state.may_get_back(order) || is_theirs() {
                // It became such a pageblock meanwhile.
                self.free[block].put_frames(word, before & frames).ok();
                self.settle(block);
            } else {
                had_any |= before & frames != 0;
            }
        }
        had_any
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

    /// A pageblock is free as a whole from here on. A CPU that freed one of its frames once more, before it was known as that, did not
    /// see it.
    pub(super) fn take_back_all(&self, block: BlockIndex) {
        for word in 0..WORDS {
            let free = self.free[block].word(word);
            if free != 0 && self.take_back(block, Order::ZERO, Back::of_word(word, free, free)) {
                count(&self.lists_of(block).counters.double_frees);
            }
        }
    }

    /// Frees of blocks that are not what their pageblock is split into: whole pageblocks, and mistakes.
    #[cold]
    fn free_slow(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        match self.free_other(cpu, pfn, order) {
            // A pageblock knows a frame that a CPU keeps as one in use. But nobody has it, whatever order is given.
            Err(FreeError::WrongOrder { .. } | FreeError::NotABlock(_)) if self.is_kept(pfn) => {
                Err(FreeError::DoubleFree(pfn))
            }
            outcome => outcome,
        }
    }

    fn free_other(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
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
                match self.frame_use(block * FRAMES + start) {
                    FrameUse::Free => return Err(FreeError::DoubleFree(pfn)),
                    _ if start != frame => return Err(FreeError::NotABlock(pfn)),
                    in_use => in_use.check(pfn)?,
                }
                if allocated != order {
                    return Err(FreeError::WrongOrder { pfn, given: order, allocated });
                }
                self.put_block(block, frame, order).map_err(|_| FreeError::DoubleFree(pfn))
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
        self.frame_use(index).check(pfn)?;
        if order != Order::ZERO {
            return Err(FreeError::WrongOrder { pfn, given: order, allocated: Order::ZERO });
        }
        let state = self.states[block].get();
        let may_keep = state.owner() != cpu && !state.is_isolated();
        if may_keep && self.keep(cpu, zone, state, order, index).is_kept(pfn)? {
            return Ok(());
        }
        self.note_line(block, cpu);
        self.put_block(block, frame, order).map_err(|_| FreeError::DoubleFree(pfn))
    }
}

/// Frames of one word that came back together, or a block of several words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Back {
    /// The first word in its pageblock, and how many there are.
    word: usize,
    words: usize,
    /// The frames of each word that came back, as bits.
    frames: usize,
    /// The free frames that the first word had then.
    free: usize,
}

impl Back {
    /// Frames of one word, which has these free frames now.
    #[inline]
    pub(super) const fn of_word(word: usize, frames: usize, free: usize) -> Self {
        Self { word, words: 1, frames, free }
    }

    #[inline]
    pub(super) fn of_block(frame: usize, order: Order, free: usize) -> Self {
        let words = (order.frames() as usize / WORD_FRAMES).max(1);
        let frames = frames_of(1 << (frame % WORD_FRAMES), order);
        Self { word: frame / WORD_FRAMES, words, frames, free }
    }
}

/// The frames of all blocks of `order` that have one of these frames of a word, as far as they lie in it.
fn frames_around(frames: usize, order: Order) -> usize {
    let size = (order.frames() as usize).min(WORD_FRAMES);
    let block = |start: usize| FULL >> (WORD_FRAMES - size) << start;
    (0..WORD_FRAMES)
        .step_by(size)
        .map(block)
        .filter(|block| block & frames != 0)
        .fold(0, |all, block| all | block)
}
