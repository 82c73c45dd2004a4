//! Blocks of an order and type of which a CPU needs few: from a pageblock with blocks of all orders of that type.
//!
//! A pageblock of its own for each order and type would lie nearly empty. One for each type holds what a CPU needs now and then.

use pageset_core::Order;

use super::neighbours::NEIGHBOURS;
use super::refill::Needy;
use super::{BlockAllocator, FRAMES, RemoteFrees, WholeUse};
use crate::cpu_lists::count;
use crate::free_bits::WORDS;
use crate::kept::Kept;
use crate::stack::BlockIndex;
use crate::state::{Phase, State};

/// Mixed pageblocks that nobody has at hand, to try before a whole one is split.
const TRIES: usize = 2;

/// Frames that a CPU takes of a mixed pageblock at once, at least and at most. Decision 0029 in the sources compares numbers.
const BATCH_MIN: usize = if cfg!(loom) { 1 } else { 4 };
const BATCH_MAX: usize = if cfg!(loom) { 2 } else { 16 };

/// Free frames of a mixed pageblock that are worth a look.
const WORTHWHILE: usize = FRAMES / 8;

impl BlockAllocator<'_> {
    /// A block of the mixed pageblock of the CPU and its neighbours, if the CPU needs few and has no pageblock for this order and
    /// type alone.
    pub(super) fn take_few(&self, needy: Needy<'_>) -> Option<usize> {
        // First, since to look where neighbours take from fetches a line of theirs.
        if !self.needs_few(needy) {
            return None;
        }
        let (block, _) = self.mixed_at_hand(needy).get()?;
        self.take_from_mixed(block, needy)
    }

    /// A block of another mixed pageblock, or of a whole one that becomes mixed. None if the CPU needs more than a few, or if there
    /// are pageblocks for this order and type alone.
    pub(super) fn take_few_from_another(&self, needy: Needy<'_>) -> Option<usize> {
        if !self.mixes_orders() || !self.needs_few(needy) {
            return None;
        }
        let zone = &self.zones[needy.zone.index()];
        let has_pageblocks = || !zone.shared(needy.wanted).is_empty();
        // Before one looks once more: a neighbour may have been faster.
        let before = self.mixed_at_hand(needy).get();
        let before = before.map(|(block, _)| block);
        self.take_few(needy)
            .or_else(|| self.adopt_mixed(needy, before))
            .or_else(|| if has_pageblocks() { None } else { self.claim_mixed(needy, before) })
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

    /// A block of a mixed pageblock that is this CPU's and its neighbours'. The CPU keeps some more for its next requests, so that
    /// neighbours seldom meet there.
    fn take_from_mixed(&self, block: BlockIndex, needy: Needy<'_>) -> Option<usize> {
        let (cursor, order) = (needy.lists.cursor(needy.wanted), needy.wanted.order);
        let state = self.states.get(block)?.get();
        let is_ours = state.phase() == Phase::Current && state.owner() == needy.first_neighbour(self);
        if !is_ours || !state.is_mixed() || state.migratetype() != needy.wanted.migratetype {
            return None;
        }
        let blocks = (self.batch(needy) >> order.get()).max(1);
        let (frame, taken) = if blocks == 1 || !Kept::keeps(order) {
            (self.take_mixed(block, order)?, 1)
        } else {
            (0..WORDS).find_map(|word| {
                let heads = self.take_word_of_mixed(block, word, order, blocks)?;
                Some((self.keep_all_but_first(block, word, heads, needy), heads.count_ones()))
            })?
        };
        self.note_line(block, needy.cpu);
        cursor.note_few(order, taken);
        Some(frame)
    }

    /// Frames to take at once: the more, the more the CPU took since the last tick; the most from the beginning, where many CPUs meet
    /// and none lacks memory.
    fn batch(&self, needy: Needy<'_>) -> usize {
        if self.parts.remote_frees != RemoteFrees::Kept {
            return 1;
        }
        let (zone, migratetype) = (needy.zone, needy.wanted.migratetype);
        if self.is_ample(zone) && self.cpus() > NEIGHBOURS as usize && self.sharers(zone, migratetype) > 1 {
            return BATCH_MAX;
        }
        let taken = needy.lists.cursor(needy.wanted).taken_of_mixed();
        (taken as usize).clamp(BATCH_MIN, BATCH_MAX)
    }

    /// A block of a mixed pageblock that nobody has at hand, and that the CPU and its neighbours have from then on.
    fn adopt_mixed(&self, needy: Needy<'_>, before: Option<BlockIndex>) -> Option<usize> {
        let mut passed = [None; TRIES];
        let found = passed.iter_mut().find_map(|passed| {
            let block = self.pop_mixed(needy)?;
            let frame = self.take_from_mixed(block, needy);
            match frame {
                Some(_) => self.share(needy, before, block),
                None => *passed = Some(block),
            }
            frame
        });
        // Not before, or the same one would come again.
        let first = needy.first_neighbour(self);
        passed.into_iter().flatten().for_each(|block| self.retire(block, first));
        found.inspect(|_| count(&needy.lists.counters.adopted))
    }

    /// A mixed pageblock that nobody has at hand; it is this CPU's and its neighbours' from then on.
    fn pop_mixed(&self, needy: Needy<'_>) -> Option<BlockIndex> {
        let zone = &self.zones[needy.zone.index()];
        let (first, migratetype) = (needy.first_neighbour(self), needy.wanted.migratetype);
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
                Some(if is_idle(state) { state.in_phase(Phase::Current).of_owner(first) } else { state })
            });
            if before.is_ok_and(is_idle) {
                self.uncount(block, needy.lists);
                return Some(block);
            }
            self.settle(block);
        }
        None
    }

    /// A block of a whole pageblock, which is this CPU's and its neighbours' for blocks of all orders from then on.
    fn claim_mixed(&self, needy: Needy<'_>, mut before: Option<BlockIndex>) -> Option<usize> {
        let migratetype = needy.wanted.migratetype;
        let first = needy.first_neighbour(self);
        let mixed = State::split(Order::ZERO, migratetype).mixed().of_owner(first);
        loop {
            let block = self.take_whole(needy)?;
            self.tails[block].clear();
            if !self.open(block, mixed) {
                continue;
            }
            // Of neighbours that do this at the same time, all but one give theirs back whole.
            self.share(needy, before, block);
            before = self.mixed_at_hand(needy).get().map(|(block, _)| block);
            if let Some(frame) = before.and_then(|block| self.take_from_mixed(block, needy)) {
                count(&needy.lists.counters.mixed);
                return Some(frame);
            }
        }
    }
}
