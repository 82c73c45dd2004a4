//! Blocks of an order and type of which a CPU needs few: from a pageblock with blocks of all orders of that type.
//!
//! A pageblock of its own for each order and type would lie nearly empty. One for each type holds what a CPU needs now and then.

use pageset_core::Order;

use super::refill::Needy;
use super::{BlockAllocator, FRAMES, WholeUse};
use crate::cpu_lists::count;
use crate::free_bits::WORDS;
use crate::stack::BlockIndex;
use crate::state::{Phase, State};
use crate::tail_bits::words_of;

/// Mixed pageblocks that nobody has at hand, to try before a whole one is split.
const TRIES: usize = 2;

/// Free frames of a mixed pageblock that are worth a look.
const WORTHWHILE: usize = FRAMES / 8;

impl BlockAllocator<'_> {
    /// A block of the CPU's mixed pageblock, if the CPU needs few and has no pageblock for this order and type alone.
    pub(super) fn take_few(&self, needy: Needy<'_>) -> Option<usize> {
        let (block, _) = needy.lists.mixed(needy.wanted.migratetype).get()?;
        if self.needs_few(needy) { self.take_from_mixed(block, needy) } else { None }
    }

    /// A block of another mixed pageblock, or of a whole one that becomes mixed. None if the CPU needs more than a few, or if there
    /// are pageblocks for this order and type alone.
    pub(super) fn take_few_from_another(&self, needy: Needy<'_>) -> Option<usize> {
        if !self.mixes_orders() || !self.needs_few(needy) {
            return None;
        }
        let zone = &self.zones[needy.zone.index()];
        let has_pageblocks = || !zone.shared(needy.wanted).is_empty();
        self.adopt_mixed(needy).or_else(|| if has_pageblocks() { None } else { self.claim_mixed(needy) })
    }

    fn needs_few(&self, needy: Needy<'_>) -> bool {
        let (lists, wanted) = (needy.lists, needy.wanted);
        lists.cursor(wanted).needs_few() && lists.stack(wanted).is_empty()
    }

    /// Whether a CPU's orders share pageblocks at first.
    pub(super) fn mixes_orders(&self) -> bool {
        self.parts.mixes_orders && self.parts.whole_use == WholeUse::AtHand
    }

    /// Whether a mixed pageblock that is idle has so much room that a CPU should find it.
    pub(super) fn is_mixed_worthwhile(&self, block: BlockIndex) -> bool {
        self.mixes_orders() && self.free[block].count() >= WORTHWHILE
    }

    /// A block of a mixed pageblock that is this CPU's.
    fn take_from_mixed(&self, block: BlockIndex, needy: Needy<'_>) -> Option<usize> {
        let state = self.states.get(block)?.get();
        let is_ours = state.phase() == Phase::Current && state.owner() == needy.cpu;
        if !is_ours || !state.is_mixed() || state.migratetype() != needy.wanted.migratetype {
            return None;
        }
        let frame = self.take_mixed(block, needy.wanted.order)?;
        self.note_line(block, needy.cpu);
        needy.lists.cursor(needy.wanted).note_few(needy.wanted.order);
        Some(frame)
    }

    /// A block of a mixed pageblock that nobody has at hand, and that is this CPU's from then on.
    fn adopt_mixed(&self, needy: Needy<'_>) -> Option<usize> {
        let mut passed = [None; TRIES];
        let found = passed.iter_mut().find_map(|passed| {
            let block = self.pop_mixed(needy)?;
            let frame = self.take_from_mixed(block, needy);
            match frame {
                Some(_) => {
                    self.put_at_hand(needy.lists.mixed(needy.wanted.migratetype), Some(block), needy.cpu)
                }
                None => *passed = Some(block),
            }
            frame
        });
        // Not before, or the same one would come again.
        passed.into_iter().flatten().for_each(|block| self.retire(block, needy.cpu));
        found.inspect(|_| count(&needy.lists.counters.adopted))
    }

    /// A mixed pageblock that nobody has at hand; it is this CPU's from then on.
    fn pop_mixed(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let zone = &self.zones[needy.zone.index()];
        let migratetype = needy.wanted.migratetype;
        let is_idle = |state: State| {
            state.phase() == Phase::Idle
                && !state.is_isolated()
                && state.is_mixed()
                && state.migratetype() == migratetype
        };
        // No more than there are: a list that is damaged may have no end.
        for _ in zone.blocks.clone() {
            let block = zone.mixed(migratetype).pop(&self.states)?;
            // What became of it in the stack shows only now.
            let before = self.states[block].update(|state| {
                let state = state.linked(false);
                Some(if is_idle(state) { state.in_phase(Phase::Current).of_owner(needy.cpu) } else { state })
            });
            if before.is_ok_and(is_idle) {
                self.uncount(block, needy.lists);
                return Some(block);
            }
            self.settle(block);
        }
        None
    }

    /// The first block of a whole pageblock, which is this CPU's for blocks of all orders from then on.
    fn claim_mixed(&self, needy: Needy<'_>) -> Option<usize> {
        let wanted = needy.wanted;
        let mixed = State::split(Order::ZERO, wanted.migratetype).mixed().of_owner(needy.cpu);
        loop {
            let block = self.take_whole(needy)?;
            self.tails[block].clear();
            self.tails[block].mark_block(0, wanted.order);
            if self.turn_into(block, |state| mixed.keeping(state)) {
                let mut rest = [0; WORDS];
                words_of(wanted.order.frames() as usize..FRAMES).for_each(|(word, bits)| rest[word] = bits);
                self.put_at_hand(needy.lists.mixed(wanted.migratetype), Some(block), needy.cpu);
                self.put_all(block, rest);
                self.note_line(block, needy.cpu);
                needy.lists.cursor(wanted).note_few(wanted.order);
                count(&needy.lists.counters.mixed);
                return Some(block * FRAMES);
            }
        }
    }
}
