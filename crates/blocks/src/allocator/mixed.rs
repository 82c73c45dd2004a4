//! Pageblocks with blocks of several orders: what a request of one order makes of a pageblock that was split for another one,
//! when memory is short or a place is given.

use pageset_core::Order;

use super::{BlockAllocator, FRAMES};
use crate::atomic::relax;
use crate::cpu_lists::count;
use crate::free_bits::{WORD_FRAMES, WORDS};
use crate::stack::BlockIndex;
use crate::state::Phase;

/// Whether a pageblock can have blocks of several orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mix {
    /// It can.
    Mixed,
    /// It cannot: it is not split, or has holes.
    Refused,
    /// Another CPU changes it.
    Busy,
}

/// The frames that a word of bits stands for, the highest first.
pub(super) fn frames_of_word(word: usize, mut bits: usize) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = bits.checked_ilog2()? as usize;
        bits &= !(1 << bit);
        Some(word * WORD_FRAMES + bit)
    })
}

/// How often to look whether another CPU is done. It is after some words, unless it stopped there.
pub(super) const LOOKS: u32 = 1000;

impl BlockAllocator<'_> {
    /// Lets a pageblock have blocks of several orders.
    pub(super) fn mix(&self, block: BlockIndex) -> Mix {
        let mut outcome = Mix::Busy;
        for _ in 0..LOOKS {
            outcome = self.try_mix(block);
            if outcome != Mix::Busy {
                break;
            }
            relax();
        }
        outcome
    }

    pub(super) fn try_mix(&self, block: BlockIndex) -> Mix {
        let begin = self.states[block].update(|state| {
            let may = state.is_open() && !state.is_holed() && !state.is_mixed();
            may.then(|| state.in_phase(Phase::Changing))
        });
        let order = match begin {
            Ok(before) => before.split_order(),
            Err(state) if state.is_open() && state.is_mixed() => return Mix::Mixed,
            Err(state) if state.phase() == Phase::Changing => return Mix::Busy,
            Err(_) => return Mix::Refused,
        };
        // Nobody keeps what it takes from here on: what is not free now stays in use or becomes free.
        let free = self.free[block].all();
        self.tails[block].clear();
        if order != Order::ZERO {
            let is_used = |start: &usize| free[start / WORD_FRAMES] >> (start % WORD_FRAMES) & 1 == 0;
            let starts = (0..FRAMES).step_by(order.frames() as usize);
            starts.filter(is_used).for_each(|start| self.tails[block].mark_uncut(start));
        }
        self.states[block].update(|state| Some(state.in_phase(Phase::Idle).mixed())).ok();
        self.settle(block);
        let state = self.states[block].get();
        count(&self.lists_of_owner(self.zone_of_block(block), state).counters.mixed);
        Mix::Mixed
    }

    /// A block from a pageblock that has blocks of several orders.
    pub(super) fn take_mixed(&self, block: BlockIndex, order: Order) -> Option<usize> {
        (0..WORDS).find_map(|word| {
            let frame = self.take_bits(block, word, order)?;
            self.keep_mixed(block, frame, order)
        })
    }

    /// Up to so many blocks, each smaller than a word, from one word of a pageblock that has blocks of several orders: a bit for
    /// each, at its first frame.
    pub(super) fn take_word_of_mixed(
        &self,
        block: BlockIndex,
        word: usize,
        order: Order,
        blocks: usize,
    ) -> Option<usize> {
        let heads = self.free[block].take_blocks(word, order, blocks);
        if heads == 0 {
            return None;
        }
        let state = self.states[block].get();
        if state.gives() && state.is_mixed() {
            frames_of_word(word, heads).for_each(|frame| self.begin_block(block, frame, order));
            self.note_taken(block);
            return Some(heads);
        }
        frames_of_word(word, heads).for_each(|frame| self.return_frames(block, frame, order));
        None
    }

    /// The block at this frame, if it is free and the pageblock can have blocks of several orders.
    pub(super) fn take_mixed_at(&self, block: BlockIndex, frame: usize, order: Order) -> Option<usize> {
        if !self.free[block].take_at(frame, order) {
            self.note_miss(block, order);
            return None;
        }
        self.keep_mixed(block, frame, order)
    }

    fn keep_mixed(&self, block: BlockIndex, frame: usize, order: Order) -> Option<usize> {
        let state = self.states[block].get();
        if state.gives() && state.is_mixed() {
            self.begin_block(block, frame, order);
            self.note_taken(block);
            return Some(block * FRAMES + frame);
        }
        self.return_frames(block, frame, order);
        None
    }
}
