//! What is left when a zone has no pageblock to give: free frames wherever they are, above the watermark. O(pageblocks).

use pageset_core::{CpuId, Order, Request, Watermark, ZoneId};

use super::mixed::Mix;
use super::refill::Needy;
use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::{AtHand, Wanted, count, types};
use crate::free_bits::WORDS;
use crate::stack::BlockIndex;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl BlockAllocator<'_> {
    pub(super) fn rescue(&self, needy: Needy<'_>, request: &Request) -> Option<(ZoneId, usize)> {
        let zone = &self.zones[needy.zone.index()];
        self.give_back_of_all(zone);
        let floor = zone.floor(request, Watermark::Min);
        let mut free = self.free_in(zone);
        let with_pageblock = floor.saturating_add(FRAMES as u64);
        let mut is_tight = floor > 0 && free.saturating_sub(self.at_hand_in(zone)) < with_pageblock;
        if is_tight {
            // CPUs take what they have at hand without a look, so it would not be left for those who may go below this floor.
            self.give_up_at_hand(zone);
            free = self.free_in(zone);
            is_tight = free < with_pageblock;
        }
        if free < floor.saturating_add(u64::from(request.order.frames())) {
            return None;
        }
        let frame = if request.order >= Order::PAGEBLOCK {
            self.reap(zone);
            self.alloc_whole(needy).map(|block| block * FRAMES)
        } else if is_tight {
            self.take_alone(needy, zone)
        } else {
            self.rescue_part(needy, zone)
        };
        frame.map(|frame| {
            count(&needy.lists.counters.rescued);
            (needy.zone, frame)
        })
    }

    /// What disturbs others least comes first.
    fn rescue_part(&self, needy: Needy<'_>, zone: &Zone) -> Option<usize> {
        let wanted = needy.wanted;
        let types = || core::iter::once(wanted.migratetype).chain(wanted.fallbacks());
        let of = |migratetype| Wanted { migratetype, ..wanted };
        self.take_alike(needy, zone)
            .or_else(|| {
                self.reap(zone);
                self.take_from_another(needy)
            })
            .or_else(|| if self.mixes_orders() { self.take_over_mixed(needy, zone) } else { None })
            .or_else(|| {
                wanted.fallbacks().into_iter().find_map(|other| self.take_foreign(needy, zone, of(other)))
            })
            .or_else(|| types().find_map(|other| self.take_cut(needy, zone, of(other), State::is_mixed)))
            .or_else(|| types().find_map(|other| self.take_cut(needy, zone, of(other), |_| true)))
    }

    /// One block, and no pageblock: of a zone so near its minimum that no CPU may have a pageblock at hand.
    fn take_alone(&self, needy: Needy<'_>, zone: &Zone) -> Option<usize> {
        let wanted = needy.wanted;
        let of = |migratetype| Wanted { migratetype, ..wanted };
        let alike = |wanted: Wanted| {
            zone.blocks.clone().find_map(|block| {
                let serves = self.states[block].get().serves(wanted.order, wanted.migratetype);
                (serves && self.free[block].has(wanted.order)).then(|| self.take_one(block, wanted))?
            })
        };
        let types = || core::iter::once(wanted.migratetype).chain(wanted.fallbacks());
        alike(wanted)
            .or_else(|| self.take_cut(needy, zone, wanted, State::is_mixed))
            .or_else(|| {
                let split = State::split(wanted.order, wanted.migratetype).in_phase(Phase::Idle);
                let block = self.claim_run(needy, 1)?;
                let taken =
                    self.open(block, split.of_owner(needy.cpu)).then(|| self.take_one(block, wanted))?;
                // What is left of it is known from here on.
                self.settle(block);
                taken
            })
            .or_else(|| wanted.fallbacks().into_iter().find_map(|other| alike(of(other))))
            .or_else(|| types().find_map(|other| self.take_cut(needy, zone, of(other), |_| true)))
    }

    /// No CPU has anything at hand of a zone that it would take without a look at how much is left.
    pub(super) fn give_up_at_hand(&self, zone: &Zone) {
        for cpu in (0..self.cpus()).map(|cpu| CpuId(cpu as u32)) {
            self.give_back_all(zone.id, cpu);
            let lists = self.lists_at(zone.id, cpu);
            for cursor in lists.cursors() {
                cursor.take_freed();
                self.give_up(&cursor.at_hand, cpu);
            }
            types().for_each(|migratetype| self.give_up(lists.mixed(migratetype), cpu));
        }
        self.reap(zone);
        self.warn(zone);
    }

    fn give_up(&self, at_hand: &AtHand, cpu: CpuId) {
        if at_hand.get().is_some() {
            self.put_at_hand(at_hand, None, cpu);
        }
    }

    /// Frames that CPUs have at hand of a zone.
    fn at_hand_in(&self, zone: &Zone) -> u64 {
        let at_hand = |block: BlockIndex| match self.states[block].get().phase() {
            Phase::Current => self.free[block].count(),
            _ => 0,
        };
        zone.blocks.clone().map(at_hand).sum::<usize>() as u64
    }

    /// From a pageblock of the same order and type that is not known to have free frames, or is another CPU's.
    fn take_alike(&self, needy: Needy<'_>, zone: &Zone) -> Option<usize> {
        zone.blocks.clone().find_map(|block| {
            let state = self.states[block].get();
            if !state.serves(needy.wanted.order, needy.wanted.migratetype)
                || !self.free[block].has(needy.wanted.order)
            {
                return None;
            }
            // Another CPU's at hand too: otherwise each block of it would be searched for, one after the other.
            let is_others = state.phase() == Phase::Current && state.owner() != needy.cpu;
            if (state.phase() == Phase::Idle || is_others) && self.adopt(block, state, needy) {
                return self.take_rest(needy);
            }
            self.take_one(block, needy.wanted)
        })
    }

    /// A pageblock that is idle, or another CPU's, becomes this CPU's, for requests of its type.
    pub(super) fn adopt(&self, block: BlockIndex, state: State, needy: Needy<'_>) -> bool {
        let ours = state.in_phase(Phase::Current).of_owner(needy.cpu).of_type(needy.wanted.migratetype);
        let adopted = self.states[block].update(|now| (now == state).then_some(ours)).is_ok();
        if adopted {
            self.uncount(block, needy.lists);
            self.put_at_hand(&needy.lists.cursor(needy.wanted).at_hand, Some(block), needy.cpu);
        }
        adopted
    }

    /// One block, from a pageblock that stays whose it is.
    pub(super) fn take_one(&self, block: BlockIndex, wanted: Wanted) -> Option<usize> {
        (0..WORDS).find_map(|word| {
            let frame = self.take_bits(block, word, wanted.order)?;
            self.note_taken(block);
            self.still(block, frame, wanted)
        })
    }

    /// From a pageblock of another type. If it is idle and half of it is free, it becomes one of ours.
    fn take_foreign(&self, needy: Needy<'_>, zone: &Zone, foreign: Wanted) -> Option<usize> {
        zone.blocks.clone().find_map(|block| {
            let state = self.states[block].get();
            if !state.serves(foreign.order, foreign.migratetype) || !self.free[block].has(foreign.order) {
                return None;
            }
            let is_mostly_free = self.free[block].count() >= FRAMES / 2;
            if state.phase() == Phase::Idle && is_mostly_free && self.adopt(block, state, needy) {
                count(&needy.lists.counters.retyped);
                count(&needy.lists.counters.foreign);
                return self.take_rest(needy);
            }
            let frame = self.take_one(block, foreign)?;
            count(&needy.lists.counters.foreign);
            Some(frame)
        })
    }

    /// From a mixed pageblock, which is this CPU's from then on: else each of its blocks would be searched for.
    fn take_over_mixed(&self, needy: Needy<'_>, zone: &Zone) -> Option<usize> {
        let wanted = needy.wanted;
        zone.blocks.clone().find_map(|block| {
            let state = self.states[block].get();
            let is_mixed = state.gives() && state.is_mixed() && state.migratetype() == wanted.migratetype;
            if !is_mixed || !self.free[block].has(wanted.order) {
                return None;
            }
            let first = needy.first_neighbour(self);
            let ours = state.in_phase(Phase::Current).of_owner(first);
            if self.states[block].update(|now| (now == state).then_some(ours)).is_ok() {
                self.uncount(block, needy.lists);
                let at_hand = self.mixed_at_hand(needy);
                self.put_at_hand(at_hand, Some(block), first);
                // The next one comes from there.
                self.put_at_hand(&needy.lists.cursor(wanted).at_hand, None, needy.cpu);
                needy.lists.cursor(wanted).forget_few();
            }
            self.take_mixed(block, wanted.order)
        })
    }

    /// From a pageblock of another order, which is cut.
    fn take_cut(
        &self,
        needy: Needy<'_>,
        zone: &Zone,
        wanted: Wanted,
        which: impl Fn(State) -> bool,
    ) -> Option<usize> {
        zone.blocks.clone().find_map(|block| {
            let state = self.states[block].get();
            let may = state.gives() && state.migratetype() == wanted.migratetype && which(state);
            if !may || !self.free[block].has(wanted.order) || self.mix(block) != Mix::Mixed {
                return None;
            }
            let frame = self.take_mixed(block, wanted.order)?;
            if wanted.migratetype != needy.wanted.migratetype {
                count(&needy.lists.counters.foreign);
            }
            Some(frame)
        })
    }

    /// Makes every pageblock whole whose frames are all free, whoever keeps it.
    pub(super) fn reap(&self, zone: &Zone) {
        zone.blocks.clone().for_each(|block| self.reap_block(block));
    }

    /// Makes a pageblock whole if all of its frames are free.
    pub(super) fn reap_block(&self, block: BlockIndex) {
        match self.states[block].get().phase() {
            Phase::Spare => self.reap_spare(block),
            Phase::Idle | Phase::Current if self.free[block].is_full() => {
                self.states[block].change(Phase::Current, Phase::Idle);
                self.settle(block);
                self.reap_spare(block);
            }
            _ => {}
        }
    }

    fn reap_spare(&self, block: BlockIndex) {
        let any = self.lists_at(self.zone_of_block(block), CpuId(0));
        self.give_spares(any, core::iter::once(block));
    }

    /// Frames of a zone that are free, wherever they are. O(pageblocks).
    pub(super) fn free_in(&self, zone: &Zone) -> u64 {
        let free = |block: BlockIndex| match self.states[block].get() {
            state if state.is_isolated() => 0,
            state => self.free_of(block, state),
        };
        zone.blocks.clone().map(free).sum::<usize>() as u64
    }

    /// Frames of a pageblock that are free, wherever they are.
    pub(super) fn free_of(&self, block: BlockIndex, state: State) -> usize {
        match state.phase() {
            Phase::Whole if self.whole.has(block) => FRAMES,
            Phase::Spare => FRAMES,
            Phase::Idle | Phase::Current => self.free[block].count(),
            _ => 0,
        }
    }
}
