//! What a pageblock becomes that no CPU reserves: whole, or a member of the sets of pageblocks with free blocks.

use pageset_core::{Order, PAGEBLOCK_ORDER};

use super::BlockAllocator;
use super::whole::UNCOUNTED;
use crate::access::{Access, update};
use crate::atomic::{Relaxed, SeqCst};
use crate::cpu_lists::count;
use crate::index::BlockIndex;
use crate::row::{ROW_ORDER, Row};
use crate::state::{Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Frames came back to a pageblock, and left the row at this place like this.
    ///
    /// The free comes before this look at the state. Whoever gives up a pageblock changes its state first and looks at its rows then. So
    /// one of the two sees what the other did. Returns the state.
    #[inline]
    pub(super) fn note_free(&self, block: BlockIndex, at: usize, row: Row) -> State {
        let state = self.states[block].get();
        self.note_free_of(block, state, at, row);
        state
    }

    /// The same by the state as it was after the free.
    #[inline(always)]
    pub(super) fn note_free_of(&self, block: BlockIndex, state: State, at: usize, row: Row) {
        if state.minds(row) {
            self.mind(block, state, at);
        }
    }

    /// The same if rows anywhere in the pageblock may have come back.
    #[cold]
    pub(super) fn note_rows(&self, block: BlockIndex) {
        let state = self.states[block].get();
        if state.minds(Row::FREE) {
            self.note_old_count(block, state);
            self.settle(block);
        }
    }

    /// A block of this order could not be taken from a pageblock.
    ///
    /// If it would have several rows, some of them may have been taken until the next one was found in use. Whoever looked at the pageblock
    /// meanwhile, because of a free or since it gave the pageblock up, saw less than there is: so they count as freed.
    #[inline]
    pub(super) fn note_missed(&self, block: BlockIndex, order: Order) {
        if order.index() > ROW_ORDER {
            self.note_rows(block);
        }
    }

    #[cold]
    #[inline(never)]
    fn mind(&self, block: BlockIndex, state: State, at: usize) {
        self.note_old_count(block, state);
        // Of CPUs that free the last rows of a block at once, each looks after its free: one sees that all of it is free.
        let new = self.rows[block].orders_at(at) & !state.orders();
        // What is smaller than the largest moves the pageblock to no other set.
        let is_smaller = |now: State| now.set_order().is_some() && new >> now.mark() == 0;
        let noted = |now: State| is_smaller(now).then(|| now.with_orders(now.orders() | new));
        if new != 0 && self.states[block].update::<A>(noted).is_err() {
            self.settle(block);
        }
    }

    /// The zone's count of a pageblock is old, if it was not before.
    fn note_old_count(&self, block: BlockIndex, state: State) {
        if state.is_counted() {
            let changed = self.states[block].update::<A>(|now| now.is_counted().then(|| now.counted(false)));
            if changed.is_ok() {
                self.index.set::<A>(UNCOUNTED).add(block);
            }
        }
    }

    /// Makes a pageblock that no CPU reserves whole if all of it is free, and a member of the sets in which it belongs.
    pub(super) fn settle(&self, block: BlockIndex) {
        loop {
            let state = self.states[block].get();
            if state.phase() != Phase::Open || state.owner().is_some() || state.is_isolated() {
                return;
            }
            let orders = self.rows[block].free_orders();
            if orders >> PAGEBLOCK_ORDER != 0 {
                if self.close(block) {
                    return;
                }
                // Somebody took a frame, or changes the pageblock.
                continue;
            }
            if orders == state.orders() {
                return;
            }
            let settled = state.with_orders(orders);
            if self.states[block].update::<A>(|now| (now == state).then_some(settled)).is_err() {
                continue;
            }
            let (before, mark) = (state.mark(), settled.mark());
            if mark == before {
                return;
            }
            #[cfg(feature = "line-counts")]
            self.rows[block].last_change.note_move();
            if let Some(order) = mark.checked_sub(1) {
                self.set_of(state.type_index(), order).add(block);
            }
            self.leave_set_of(block, state);
            if mark > before {
                return;
            }
            // A block that somebody freed before the mark was lowered: that one saw the old mark, and did not mind.
        }
    }

    /// Makes an open pageblock whole, if all of it is free.
    fn close(&self, block: BlockIndex) -> bool {
        let begin = |state: State| {
            let is_open = state.phase() == Phase::Open && state.owner().is_none() && !state.is_isolated();
            is_open.then(|| state.in_phase(Phase::Changing))
        };
        let Ok(before) = self.states[block].update::<A>(begin) else { return false };
        if !self.rows[block].close() {
            // Whoever found it in its set meanwhile saw that it does not belong there, and removed it. So it begins anew, in no set.
            let reopened = self.states[block]
                .update::<A>(|state| Some(state.in_phase(Phase::Open).with_orders(0).counted(false)));
            self.leave_set_of(block, before);
            if reopened.is_ok_and(|state| state.is_isolated()) {
                // Whoever took it out of service left this to whoever changes it.
                self.uncount(block);
            } else if before.is_counted() {
                // Who freed something meanwhile did not mind.
                self.index.set::<A>(UNCOUNTED).add(block);
            }
            return false;
        }
        self.leave_set_of(block, before);
        self.uncount(block);
        let zone = self.zone_at(block);
        count::<A>(&self.lists_at(zone.id, pageset_core::CpuId(0)).counters.closed);
        if before.has_bad() {
            // None of them is: all frames were free.
            self.clear_bad(block);
        }
        self.give_whole(block);
        true
    }

    /// The zone of a pageblock.
    pub(super) fn zone_at(&self, block: BlockIndex) -> &Zone {
        &self.zones[self.zone_of_block(block).index()]
    }

    /// What is free in a pageblock that no CPU reserves counts as free in its zone.
    ///
    /// The state says first that all is counted. So a free that this does not see finds that, and says that the count is old.
    pub(super) fn count_free(&self, block: BlockIndex) {
        let is_idle =
            |state: State| state.phase() == Phase::Open && state.owner().is_none() && !state.is_isolated();
        if self.states[block].update::<A>(|state| is_idle(state).then(|| state.counted(true))).is_err() {
            return;
        }
        self.recount(block, self.rows[block].free());
        if !is_idle(self.states[block].get()) {
            // Whoever made something else of it may have been faster.
            self.uncount(block);
        }
    }

    fn recount(&self, block: BlockIndex, free: usize) {
        let before = update::<A, _>(&self.states[block].counted, SeqCst, |_| Some(free as u32)).unwrap_or(0);
        self.zone_at(block).recount::<A>(before, free as u32);
    }

    /// Frames of a pageblock do not count as free any more.
    pub(super) fn uncount(&self, block: BlockIndex) {
        if self.states[block].counted.load(SeqCst) != 0 {
            self.recount(block, 0);
        }
    }

    /// Frames were taken from a pageblock: the zone must not count more than there are.
    pub(super) fn note_taken(&self, block: BlockIndex, frames: u32) {
        let counted = &self.states[block].counted;
        if counted.load(Relaxed) != 0 {
            let take = |counted: u32| Some(counted.saturating_sub(frames));
            if let Ok(before) = update::<A, _>(counted, SeqCst, take) {
                self.zone_at(block).recount::<A>(before, before.saturating_sub(frames));
            }
        }
    }

    /// The zone counts what was freed since. O(pageblocks to which something was freed since the last time).
    pub(super) fn count_frees(&self, zone: &Zone) {
        let uncounted = self.index.set::<A>(UNCOUNTED);
        // No more than there are: others may free meanwhile, without end.
        for _ in zone.blocks.clone() {
            let Some(block) = uncounted.find(&zone.blocks, zone.blocks.start) else { return };
            uncounted.remove(block);
            self.count_free(block);
        }
    }

    /// Whether so many frames of a zone are free, without those of pageblocks that CPUs reserve.
    pub(super) fn is_free_at_least(&self, zone: &Zone, frames: u64) -> bool {
        zone.free_at_least() >= frames || {
            self.count_frees(zone);
            zone.free_at_least() >= frames
        }
    }
}

const _: () = assert!(PAGEBLOCK_ORDER <= 16, "a bit for each order, where the owner is otherwise");
