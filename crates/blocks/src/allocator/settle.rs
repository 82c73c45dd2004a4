//! What becomes of an idle pageblock after frames came back to it: whole again, or known to have free frames.

use super::{BlockAllocator, WholeUse};
use crate::atomic::{Relaxed, SeqCst, fence};
use crate::cpu_lists::{CpuLists, Wanted, count};
use crate::stack::BlockIndex;
use crate::state::{Phase, State};

impl BlockAllocator<'_> {
    /// Makes an idle pageblock whole if all of it is free, and known if it has enough free frames.
    pub(super) fn settle(&self, block: BlockIndex) {
        loop {
            // What the caller put back or changed comes before what is read here: of two who free the last two words of a
            // pageblock, or of one who frees and one who makes the pageblock idle, one sees what the other did.
            fence(SeqCst);
            let state = self.states[block].get();
            if state.phase() != Phase::Idle || state.is_isolated() {
                return;
            }
            if self.free[block].is_full() {
                if self.close(block) {
                    return;
                }
                // Somebody took a frame or changes the pageblock; who freed one meanwhile did not see it idle.
                continue;
            }
            if state.is_linked() || self.link(block, state) {
                return;
            }
        }
    }

    /// Puts a pageblock into the stack of its owner, or of the zone if the owner is idle or has enough, or if it is mixed; if it has
    /// enough free frames. `false` if somebody changed it meanwhile.
    fn link(&self, block: BlockIndex, state: State) -> bool {
        let Some(wanted) = Wanted::of_split(state) else { return true };
        let is_worthwhile = if state.is_mixed() {
            self.is_mixed_worthwhile(block)
        } else {
            self.free[block].is_worthwhile(wanted.order)
        };
        if !is_worthwhile {
            return true;
        }
        let is_same = |now: State| now == state;
        if self.states[block].update(|now| is_same(now).then(|| now.linked(true))).is_err() {
            return false;
        }
        let zone = self.zone_of_block(block);
        if state.is_mixed() {
            self.zones[zone.index()].mixed(wanted.migratetype).push(&self.states, block);
            return true;
        }
        let owner = self.lists_of_owner(zone, state);
        self.count_idle(block, owner);
        let may_keep = self.parts.has_own_stacks && owner.activity.is_recent();
        let stack = if may_keep && owner.budget.add() {
            owner.stack(wanted)
        } else {
            self.zones[zone.index()].shared(wanted)
        };
        stack.push(&self.states, block);
        true
    }

    /// Makes an idle pageblock whole, if all of it is free. Its owner keeps it, unless that is idle or has enough.
    pub(super) fn close(&self, block: BlockIndex) -> bool {
        if !self.states[block].change(Phase::Idle, Phase::Changing) {
            return false;
        }
        if !self.free[block].close() {
            self.states[block].change(Phase::Changing, Phase::Idle);
            return false;
        }
        let zone = self.zone_of_block(block);
        let state = self.states[block].get();
        if state.has_bad() {
            // None of them is: all frames are free.
            self.clear_bad(block);
        }
        let lists = self.lists_of_owner(zone, state);
        self.uncount(block, lists);
        count(&lists.counters.closed);
        if lists.activity.is_recent() && self.parts.whole_use == WholeUse::AtHand {
            if self.turn_into(block, |state| state.unused(Phase::Spare)) {
                self.take_back_all(block);
                self.keep_spare(lists, block);
            }
        } else if self.turn_into(block, |state| state.unused(Phase::Whole)) {
            self.take_back_all(block);
            self.publish(block, 1);
            count(&lists.counters.published);
        }
        true
    }

    /// What is free in this idle pageblock, which is in a stack, counts as free, in this CPU's surplus first.
    fn count_idle(&self, block: BlockIndex, lists: &CpuLists) {
        self.recount(block, self.free[block].count(), lists);
        let now = self.states[block].get();
        if now.phase() != Phase::Idle || now.is_isolated() {
            // Whoever made something else of it may have been faster.
            self.uncount(block, lists);
        }
    }

    /// Frames were taken from a pageblock, idle or not: the zone must not count more than there are.
    pub(super) fn note_taken(&self, block: BlockIndex) {
        let counted = self.states[block].counted.load(Relaxed) as usize;
        if counted != 0 && counted > self.free[block].count() {
            self.count_idle(block, self.lists_of(block));
        }
    }

    /// So many frames of this idle pageblock count as free.
    fn recount(&self, block: BlockIndex, free: usize, lists: &CpuLists) {
        let before = self.states[block].counted.swap(free as u32, SeqCst);
        self.zones[self.zone_of_block(block).index()].recount_idle(&lists.surplus, before, free as u32);
    }

    /// Frames of this pageblock do not count as free any more: it is not idle.
    ///
    /// In one order with the changes of the pageblock's state: who counts it at this moment sees that it is not idle, or this sees
    /// what was counted.
    pub(super) fn uncount(&self, block: BlockIndex, lists: &CpuLists) {
        if self.states[block].counted.load(SeqCst) != 0 {
            self.recount(block, 0, lists);
        }
    }

    /// What the owner of a pageblock, if it is split, has of its zone.
    pub(super) fn lists_of(&self, block: BlockIndex) -> &CpuLists {
        self.lists_of_owner(self.zone_of_block(block), self.states[block].get())
    }
}
