//! Which blocks are where in a pageblock that has blocks of several orders, and their frees.

use core::ops::Range;

use pageset_core::{CpuId, FreeError, Order, Pfn, ZoneId};

use super::{BlockAllocator, FRAMES};
use crate::free_bits::WORD_FRAMES;
use crate::stack::BlockIndex;
use crate::state::State;

impl BlockAllocator<'_> {
    /// A block that was just taken from a pageblock with blocks of several orders begins here.
    pub(super) fn begin_block(&self, block: BlockIndex, frame: usize, order: Order) {
        let uncut = self.uncut_order(block);
        if order < uncut {
            // What is free of an uncut block was freed by somebody who left its mark.
            self.tails[block].mark_head(start_of(frame, uncut));
        }
        self.tails[block].mark_block(frame, order);
    }

    /// The order of blocks that are in use since before the pageblock had blocks of several orders.
    fn uncut_order(&self, block: BlockIndex) -> Order {
        self.states[block].get().split_order()
    }

    /// The first frame of the uncut block in use that has this frame.
    fn uncut_around(&self, block: BlockIndex, frame: usize) -> Option<usize> {
        let start = start_of(frame, self.uncut_order(block));
        (self.tails[block].is_uncut(start) && !self.free[block].is_free(start)).then_some(start)
    }

    /// Whether the block in use before this frame goes on here.
    pub(super) fn goes_on(&self, block: BlockIndex, frame: usize) -> bool {
        frame < FRAMES && self.going_on(block, frame / WORD_FRAMES) >> (frame % WORD_FRAMES) & 1 == 1
    }

    /// The frames of a word at which a block in use goes on, as bits.
    fn going_on(&self, block: BlockIndex, word: usize) -> usize {
        self.tails[block].going_on(word) & !self.free[block].word(word)
    }

    /// The order of the block in use that begins at this frame.
    pub(super) fn order_in_mixed(&self, block: BlockIndex, frame: usize) -> Order {
        if self.uncut_around(block, frame) == Some(frame) {
            return self.uncut_order(block);
        }
        let frames = self.end_in_mixed(block, frame) - frame;
        Order::new(frames.ilog2() as u8).unwrap_or(Order::ZERO)
    }

    /// Where the block in use ends that has this frame.
    fn end_in_mixed(&self, block: BlockIndex, frame: usize) -> usize {
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

    /// The block in use around a frame of a split pageblock.
    pub(super) fn block_in_split(&self, block: BlockIndex, frame: usize, state: State) -> (usize, Order) {
        if !state.is_mixed() {
            let order = state.split_order();
            return (start_of(frame, order), order);
        }
        let start = self.uncut_around(block, frame).unwrap_or_else(|| self.start_in_mixed(block, frame));
        (start, self.order_in_mixed(block, start))
    }

    /// Whether a block in use begins at this frame, which is in use.
    pub(super) fn begins_in_split(&self, block: BlockIndex, frame: usize, state: State) -> bool {
        self.block_in_split(block, frame, state).0 == frame
    }

    /// Where the block in use begins that has this frame.
    fn start_in_mixed(&self, block: BlockIndex, frame: usize) -> usize {
        let last_head = |word: usize| {
            let frames = (frame + 1 - word * WORD_FRAMES).min(WORD_FRAMES);
            let heads = !self.going_on(block, word) & (usize::MAX >> (WORD_FRAMES - frames));
            heads.checked_ilog2().map(|bit| word * WORD_FRAMES + bit as usize)
        };
        (0..=frame / WORD_FRAMES).rev().find_map(last_head).unwrap_or(0)
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
        self.tails[block].clear_frames(frame..frame + order.frames() as usize);
        self.note_line(block, cpu);
        let free = self.free[block].put(frame, order).map_err(|_| FreeError::DoubleFree(pfn))?;
        self.note_free(block, order, free);
        Ok(())
    }

    /// The state of a pageblock that has blocks of several orders, if this is one of them and in use.
    pub(super) fn check_in_mixed(&self, pfn: Pfn, index: usize, order: Order) -> Result<State, FreeError> {
        let (block, frame) = (index / FRAMES, index % FRAMES);
        if self.free[block].is_free(frame) {
            return Err(FreeError::DoubleFree(pfn));
        }
        let state = self.states[block].get();
        if !self.begins_in_split(block, frame, state) {
            return Err(FreeError::NotABlock(pfn));
        }
        if self.is_bad(block, frame, state) {
            return Err(FreeError::Leaked(pfn));
        }
        let allocated = self.order_in_mixed(block, frame);
        if allocated == order {
            Ok(state)
        } else {
            Err(FreeError::WrongOrder { pfn, given: order, allocated })
        }
    }

    /// These frames, which are in use, become blocks of one frame; what is left of blocks at both ends becomes the largest blocks
    /// that fit.
    pub(super) fn cut_out(&self, block: BlockIndex, part: Range<usize>) {
        let Some(last) = part.end.checked_sub(1) else { return };
        let state = self.states[block].get();
        let (head, _) = self.block_in_split(block, part.start, state);
        let (tail, order) = self.block_in_split(block, last, state);
        let end = (tail + order.frames() as usize).max(part.end);
        self.tails[block].clear_frames(head..end);
        for rest in [head..part.start, part.end..end] {
            for (start, order) in largest_blocks(rest) {
                self.tails[block].mark_block(start, order);
            }
        }
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
