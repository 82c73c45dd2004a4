//! Which blocks are where in a pageblock that has blocks of several orders, and their frees.

use core::ops::Range;

use pageset_core::{CpuId, FreeError, Order, Pfn, ZoneId};

use super::in_use::FrameUse;
use super::{BlockAllocator, FRAMES};
use crate::free_bits::WORD_FRAMES;
use crate::stack::BlockIndex;
use crate::state::State;

impl BlockAllocator<'_> {
    /// A block that was just taken from a pageblock with blocks of several orders begins here.
    pub(super) fn begin_block(&self, block: BlockIndex, frame: usize, order: Order) {
        let tails = &self.tails[block];
        let uncut = self.uncut_order(block);
        if order < uncut {
            // What is free of an uncut block was freed by a CPU that left its mark.
            tails.mark_head(start_of(frame, uncut));
        }
        let end = frame + order.frames() as usize;
        let word = tails.mark_head(frame);
        let is_tail = || match end / WORD_FRAMES == frame / WORD_FRAMES {
            true => word >> (end % WORD_FRAMES) & 1 == 1,
            false => tails.is_tail(end),
        };
        // A part of a block that was in use in one piece before. First, so that at no time it seems to be a part of this one.
        if end < FRAMES && is_tail() && self.goes_on(block, end) {
            tails.mark_head(end);
        }
        tails.mark_tails(frame + 1..end);
    }

    /// These frames are in use, and about to be free; what lies before and behind them are other blocks, or will be.
    pub(super) fn cut_off(&self, block: BlockIndex, part: Range<usize>) {
        let tails = &self.tails[block];
        if self.goes_on(block, part.end) {
            tails.mark_head(part.end);
        }
        // Else what is left before it would end like the mark of an uncut block.
        if part.start % 2 == 1 && self.goes_on(block, part.start) {
            tails.mark_head(part.start - 1);
        }
        tails.clear_frames(part);
    }

    /// The order of blocks that are in use since before the pageblock had blocks of several orders.
    fn uncut_order(&self, block: BlockIndex) -> Order {
        self.states[block].get().split_order()
    }

    /// The first frame of the uncut block in use that has this frame.
    fn uncut_around(&self, block: BlockIndex, frame: usize) -> Option<usize> {
        let order = self.uncut_order(block);
        let start = start_of(frame, order);
        let is_used = || !self.free[block].has_any(start..start + order.frames() as usize);
        (self.tails[block].is_uncut(start) && is_used()).then_some(start)
    }

    /// An uncut block in use is marked as all others are from here on, if this frame is in one.
    fn mark_cut(&self, block: BlockIndex, frame: usize) {
        if let Some(start) = self.uncut_around(block, frame) {
            self.tails[block].mark_cut(start, self.uncut_order(block));
        }
    }

    /// Whether what is in use before this frame goes on here.
    fn goes_on(&self, block: BlockIndex, frame: usize) -> bool {
        frame < FRAMES && self.going_on(block, frame / WORD_FRAMES) >> (frame % WORD_FRAMES) & 1 == 1
    }

    /// The frames of a word at which what is in use goes on, as bits.
    fn going_on(&self, block: BlockIndex, word: usize) -> usize {
        self.tails[block].going_on(word) & !self.free[block].word(word)
    }

    /// The block in use around a frame of a split pageblock: its first frame and order.
    pub(super) fn block_in_split(&self, block: BlockIndex, frame: usize, state: State) -> (usize, Order) {
        let order = state.split_order();
        if !state.is_mixed() {
            return (start_of(frame, order), order);
        }
        if let Some(start) = self.uncut_around(block, frame) {
            return (start, order);
        }
        let run = self.start_of_run(block, frame)..self.end_of_run(block, frame);
        let is_around = |(start, order): &(usize, Order)| frame < start + order.frames() as usize;
        largest_blocks(run).find(is_around).unwrap_or((frame, Order::ZERO))
    }

    /// Whether a block in use begins at this frame, which is in use.
    pub(super) fn begins_in_split(&self, block: BlockIndex, frame: usize, state: State) -> bool {
        self.block_in_split(block, frame, state).0 == frame
    }

    /// Where frames in use begin that go on up to this one.
    fn start_of_run(&self, block: BlockIndex, frame: usize) -> usize {
        let last_head = |word: usize| {
            let frames = (frame + 1 - word * WORD_FRAMES).min(WORD_FRAMES);
            let heads = !self.going_on(block, word) & (usize::MAX >> (WORD_FRAMES - frames));
            heads.checked_ilog2().map(|bit| word * WORD_FRAMES + bit as usize)
        };
        let head = (0..=frame / WORD_FRAMES).rev().find_map(last_head).unwrap_or(0);
        if head == frame {
            frame
        } else if self.free[block].is_free(head) {
            head + 1
        } else {
            let behind = |start: usize| start + self.uncut_order(block).frames() as usize;
            self.uncut_around(block, head).map_or(head, behind)
        }
    }

    /// Where they end that go on from this one.
    fn end_of_run(&self, block: BlockIndex, frame: usize) -> usize {
        let mut end = frame + 1;
        while end < FRAMES {
            let (word, bit) = (end / WORD_FRAMES, end % WORD_FRAMES);
            let more = (self.going_on(block, word) >> bit).trailing_ones() as usize;
            end += more;
            if bit + more < WORD_FRAMES {
                break;
            }
        }
        end
    }

    /// Frees a block of a pageblock that has blocks of several orders, unless the CPU keeps it.
    pub(super) fn free_mixed(
        &self,
        cpu: CpuId,
        zone: ZoneId,
        pfn: Pfn,
        index: usize,
        order: Order,
    ) -> Result<(), FreeError> {
        let state = self.check_in_mixed(pfn, index, order)?;
        // Its owner's too: neighbours take from it.
        if state.is_isolated() {
            return self.put_mixed(cpu, pfn, index, order);
        }
        if self.keep(cpu, zone, state, order, index).is_kept(pfn)? {
            return Ok(());
        }
        self.put_mixed(cpu, pfn, index, order)
    }

    /// Frees a block of a pageblock that has blocks of several orders.
    pub(super) fn put_mixed(
        &self,
        cpu: CpuId,
        pfn: Pfn,
        index: usize,
        order: Order,
    ) -> Result<(), FreeError> {
        let (block, frame) = (index / FRAMES, index % FRAMES);
        self.cut_off(block, frame..frame + order.frames() as usize);
        self.note_line(block, cpu);
        self.put_block(block, frame, order).map_err(|_| FreeError::DoubleFree(pfn))
    }

    /// The state of a pageblock that has blocks of several orders, if this is one of them and in use.
    pub(super) fn check_in_mixed(&self, pfn: Pfn, index: usize, order: Order) -> Result<State, FreeError> {
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        let of_frame = self.frame_use(index);
        if of_frame == FrameUse::Free {
            return Err(FreeError::DoubleFree(pfn));
        }
        let (start, allocated) = self.block_in_split(block, frame, state);
        if start != frame {
            return Err(FreeError::NotABlock(pfn));
        }
        of_frame.check(pfn)?;
        if allocated == order {
            Ok(state)
        } else {
            Err(FreeError::WrongOrder { pfn, given: order, allocated })
        }
    }

    /// These frames, which are in use, are blocks that end where the range does, or will be. `false` if a CPU cuts blocks of the same
    /// pageblock, or if it is not what it was.
    pub(super) fn cut_out(&self, block: BlockIndex, part: Range<usize>) -> bool {
        let Some(last) = part.end.checked_sub(1) else { return true };
        let state = self.states[block].get();
        let (tail, order) = self.block_in_split(block, last, state);
        let begins = self.block_in_split(block, part.start, state).0 == part.start;
        if begins && tail + order.frames() as usize == part.end {
            // Whole blocks, which concern nobody else.
            self.cut_off(block, part);
            return true;
        }
        self.while_cutting(block, || {
            // Its other frames may be another's by now.
            [part.start, last].into_iter().for_each(|frame| self.mark_cut(block, frame));
            self.cut_off(block, part);
        })
    }

    /// The blocks of these frames, which are in use, become blocks of one frame: all of each. `false` as for a
    /// [cut](Self::cut_out).
    pub(super) fn cut_up(&self, block: BlockIndex, part: Range<usize>) -> bool {
        let Some(last) = part.end.checked_sub(1) else { return true };
        self.while_cutting(block, || {
            let state = self.states[block].get();
            let (start, _) = self.block_in_split(block, part.start, state);
            let (tail, order) = self.block_in_split(block, last, state);
            self.cut_off(block, start..(tail + order.frames() as usize).max(part.end));
        })
    }

    /// Two CPUs that own parts of one block may cut it at the same time. The first to set the bit cuts, and the other one is told to try
    /// again: else it could mark frames that the first one has freed, and that a third one has got by then. `false` if another CPU is at
    /// work, or if the pageblock has no blocks of several orders.
    fn while_cutting(&self, block: BlockIndex, cut: impl FnOnce()) -> bool {
        let may = |state: State| state.is_open() && state.is_mixed() && !state.is_being_cut();
        let begun = self.states[block].update(|state| may(state).then(|| state.being_cut(true)));
        if begun.is_ok() {
            cut();
            self.states[block].update(|state| Some(state.being_cut(false))).ok();
        }
        begun.is_ok()
    }
}

/// The first frame of the aligned block around a frame.
const fn start_of(frame: usize, order: Order) -> usize {
    frame & !(order.frames() as usize - 1)
}

/// A range as blocks, each as large as its place allows.
fn largest_blocks(range: Range<usize>) -> impl Iterator<Item = (usize, Order)> {
    let mut start = range.start;
    core::iter::from_fn(move || {
        let left = range.end.checked_sub(start).filter(|left| *left > 0)?;
        let by_place = if start == 0 { u32::MAX } else { start.trailing_zeros() };
        let order = Order::new(by_place.min(left.ilog2()) as u8)?;
        let at = start;
        start += order.frames() as usize;
        Some((at, order))
    })
}
