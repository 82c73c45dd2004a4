//! Where a CPU's next block comes from when the word at hand has none: the rest of its pageblock, another one of its own, one
//! that nobody uses, a whole one.

use core::ops::Range;

use pageset_core::{CpuId, ZoneId};

use super::BlockAllocator;
use super::isolation::ALL_FREE;
use super::reserve::Reserve;
use crate::cpu_lists::{AtHand, CpuLists, Wanted, count};
use crate::free_bits::WORDS;
use crate::stack::BlockIndex;
use crate::state::{Phase, State};

/// A CPU that needs blocks of a zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needy<'l> {
    pub(super) zone: ZoneId,
    pub(super) cpu: CpuId,
    pub(super) lists: &'l CpuLists,
    pub(super) wanted: Wanted,
    pub(super) reserve: Reserve,
}

impl BlockAllocator<'_> {
    /// A block from the rest of the pageblock at hand.
    pub(super) fn take_rest(&self, needy: Needy<'_>) -> Option<usize> {
        self.take_from_words(needy, 1..WORDS + 1)
    }

    /// A block from a word of the pageblock at hand that is so many after the one at hand.
    fn take_from_words(&self, needy: Needy<'_>, mut steps: Range<usize>) -> Option<usize> {
        let cursor = needy.lists.cursor(needy.wanted);
        let (block, word) = cursor.get()?;
        let state = self.states.get(block)?.get();
        let is_ours = state.phase() == Phase::Current && state.owner() == needy.cpu;
        if !is_ours || !state.serves(needy.wanted.order, needy.wanted.migratetype) {
            return None;
        }
        steps.find_map(|step| {
            let next = (word + step) % WORDS;
            let frame = self.take_bits(block, next, needy.wanted.order)?;
            if step > 0 {
                cursor.advance(block, word, next);
            }
            self.note_line(block, needy.cpu);
            self.still(block, frame, needy.wanted)
        })
    }

    /// A block from another pageblock, which is at hand from then on; or one of few, from a mixed one.
    pub(super) fn take_from_another(&self, needy: Needy<'_>) -> Option<usize> {
        if let Some(frame) = self.take_few_from_another(needy) {
            return Some(frame);
        }
        loop {
            let block = self.next_block(needy)?;
            self.put_at_hand(&needy.lists.cursor(needy.wanted).at_hand, Some(block), needy.cpu);
            // The word at hand has not been looked at yet. Others may have been faster: then the next pageblock.
            if let Some(frame) = self.take_from_words(needy, 0..WORDS) {
                return Some(frame);
            }
        }
    }

    /// From now on blocks come from this pageblock; the one before is idle.
    pub(super) fn put_at_hand(&self, at_hand: &AtHand, block: Option<BlockIndex>, cpu: CpuId) {
        if let Some(before) = at_hand.replace(block)
            && Some(before) != block
        {
            self.retire(before, cpu);
        }
    }

    /// A CPU does not allocate from a pageblock any more.
    pub(super) fn retire(&self, block: BlockIndex, cpu: CpuId) {
        let is_ours = |state: State| state.phase() == Phase::Current && state.owner() == cpu;
        let to_idle = |state: State| is_ours(state).then(|| state.in_phase(Phase::Idle));
        if self.states.get(block).is_some_and(|state| state.update(to_idle).is_ok()) {
            self.settle(block);
        }
    }

    fn next_block(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let lists = needy.lists;
        if let Some(block) = self.pop_idle(|| self.pop_own(lists, needy.wanted), needy) {
            count(&lists.counters.reused);
            return Some(block);
        }
        lists.budget.note_miss();
        let shared = self.zones[needy.zone.index()].shared(needy.wanted);
        if let Some(block) = self.pop_idle(|| shared.pop(&self.states), needy) {
            count(&lists.counters.adopted);
            return Some(block);
        }
        self.claim(needy)
    }

    /// A pageblock from the stack of a CPU.
    pub(super) fn pop_own(&self, lists: &CpuLists, wanted: Wanted) -> Option<BlockIndex> {
        let block = lists.stack(wanted).pop(&self.states)?;
        lists.budget.remove();
        Some(block)
    }

    /// The first pageblock of a stack that serves; it is this CPU's from then on.
    fn pop_idle(&self, pop: impl Fn() -> Option<BlockIndex>, needy: Needy<'_>) -> Option<BlockIndex> {
        // No more than there are: a list that is damaged may have no end.
        for block in core::iter::from_fn(pop).take(self.zones[needy.zone.index()].blocks.len()) {
            let wanted = needy.wanted;
            // What became of it in the stack shows only now.
            let before = self.states[block].update(|state| {
                let state = state.linked(false);
                let is_ours = state.phase() == Phase::Idle && state.serves(wanted.order, wanted.migratetype);
                Some(if is_ours { state.in_phase(Phase::Current).of_owner(needy.cpu) } else { state })
            });
            let Ok(before) = before else { continue };
            if before.phase() == Phase::Idle && before.serves(wanted.order, wanted.migratetype) {
                self.uncount(block, needy.lists);
                return Some(block);
            }
            // It may have free frames all the same: whoever may use them finds it in its own stack.
            self.settle(block);
        }
        None
    }

    /// A whole pageblock, split for this CPU.
    pub(super) fn claim(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let split = State::split(needy.wanted.order, needy.wanted.migratetype).of_owner(needy.cpu);
        let to_changing = |state: State| {
            let is_spare = state.phase() == Phase::Spare && !state.is_isolated();
            is_spare.then(|| split.in_phase(Phase::Changing).keeping(state))
        };
        if let Some(block) = self.take_spare(needy.lists, to_changing)
            && self.end_opening(block, Phase::Current, ALL_FREE)
        {
            return Some(block);
        }
        loop {
            let block = self.claim_some(needy)?;
            if self.open(block, split) {
                return Some(block);
            }
        }
    }
}
