//! Settles unreserved pageblocks: looks at the rows, and makes the pageblock whole or moves it to the set of
//! its largest free block.

use pageset_core::{CpuId, Order, PAGEBLOCK_ORDER};

use super::BlockAllocator;
use super::sets::Members;
use crate::access::{Access, update};
use crate::atomic::{Relaxed, SeqCst};
use crate::bad_bits::BadBits;
use crate::cpu_share::count;
use crate::index::BlockIndex;
use crate::row::{ROW_ORDER, Row};
use crate::state::{Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Looks after a pageblock if necessary, after a CPU freed a block of it and left `row` at place `at`.
    /// Returns the state of the pageblock.
    ///
    /// Race: one CPU frees a frame and then reads the state here, while another CPU gives up the pageblock:
    /// it changes the state and then reads the rows. At least one of the two sees the other's change, and
    /// settles the pageblock.
    #[inline]
    pub(super) fn note_free(&self, cpu: CpuId, block: BlockIndex, at: usize, row: Row) -> State {
        let state = self.states[block].get();
        self.note_free_of(cpu, block, state, at, row);
        state
    }

    /// Does the same as [`note_free`](Self::note_free) for a caller that read `state` after the free.
    #[inline(always)]
    pub(super) fn note_free_of(&self, cpu: CpuId, block: BlockIndex, state: State, at: usize, row: Row) {
        if state.needs_look(row) {
            self.mind(cpu, block, state, at);
        }
    }

    /// Does the same as [`note_free`](Self::note_free), after frames in any row of the pageblock may have
    /// become free.
    #[cold]
    pub(super) fn note_rows(&self, block: BlockIndex) {
        let state = self.states[block].get();
        if state.needs_look(Row::FREE) {
            self.note_old_count(block, state);
            self.settle(block);
        }
    }

    /// Settles a pageblock if necessary, after a CPU tried in vain to take a block of this order.
    ///
    /// Race: a larger block has several rows. This CPU took some of them before it found a row in use, and
    /// gave them back. If another CPU settled the pageblock meanwhile, it did not see those rows as free. So
    /// the failed attempt counts as a free: this CPU settles the pageblock.
    #[inline]
    pub(super) fn note_missed(&self, block: BlockIndex, order: Order) {
        if order.index() > ROW_ORDER {
            self.note_rows(block);
        }
    }

    /// Looks after an unreserved pageblock that has a larger free block than its set says, or whose count is
    /// out of date. If it was full, the CPU that freed reserves it, so that its further frees change no set.
    #[cold]
    #[inline(never)]
    fn mind(&self, cpu: CpuId, block: BlockIndex, state: State, at: usize) {
        self.note_old_count(block, state);
        // Race: several CPUs free the last rows of a block at once. Each looks after its own free, so the
        // last CPU sees that the whole block is free.
        let new = self.rows[block].orders_at(at) & !state.orders();
        // Only the largest order decides the set, so a smaller order is just noted.
        let is_smaller = |now: State| now.set_order().is_some() && new >> now.mark() == 0;
        let noted = |now: State| is_smaller(now).then(|| now.with_orders(now.orders() | new));
        if new == 0 || self.states[block].update::<A>(noted).is_ok() {
            return;
        }
        if new >> PAGEBLOCK_ORDER != 0 || !self.reserve_freed(cpu, block) {
            self.settle_for(block, Some(cpu));
        }
    }

    /// Marks the zone's count of a pageblock as out of date.
    fn note_old_count(&self, block: BlockIndex, state: State) {
        if state.is_counted() {
            let changed = self.states[block].update::<A>(|now| now.is_counted().then(|| now.counted(false)));
            if changed.is_ok() {
                self.set(Members::Uncounted).add(block);
            }
        }
    }

    /// Settles a pageblock that no CPU reserves: makes it whole if all frames are free, or moves it to its
    /// set.
    pub(super) fn settle(&self, block: BlockIndex) {
        self.settle_for(block, None);
    }

    /// Does the same as [`settle`](Self::settle). If the pageblock becomes whole, `keeper` keeps it in its
    /// stock.
    pub(super) fn settle_for(&self, block: BlockIndex, keeper: Option<CpuId>) {
        loop {
            let state = self.states[block].get();
            if !state.is_idle() {
                return;
            }
            let orders = self.rows[block].free_orders();
            if orders >> PAGEBLOCK_ORDER != 0 {
                if self.close(block, keeper) {
                    return;
                }
                // Another CPU has taken a frame, or is changing the pageblock: look again.
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
            if mark > before || !A::IS_SHARED {
                return;
            }
            // The largest order fell. Race: a CPU has just freed a larger block. It saw the old order, and
            // so did not settle the pageblock. Look again.
        }
    }

    /// Makes an open pageblock whole, if all of its frames are free.
    fn close(&self, block: BlockIndex, keeper: Option<CpuId>) -> bool {
        let begin = |state: State| state.is_idle().then(|| state.in_phase(Phase::Changing));
        let Ok(before) = self.states[block].update::<A>(begin) else { return false };
        if !self.rows[block].close() {
            // Race: another CPU found the pageblock in its set, saw the phase `Changing`, and removed it
            // from the set. So the state must say that the pageblock is in no set.
            let reopened = self.states[block]
                .update::<A>(|state| Some(state.in_phase(Phase::Open).with_orders(0).counted(false)));
            self.leave_set_of(block, before);
            if reopened.is_ok_and(|state| state.is_isolated()) {
                // Race: another CPU took the pageblock out of service. It could not uncount the pageblock,
                // because the phase was `Changing`.
                self.uncount(block);
            } else if before.is_counted() {
                // Race: another CPU freed a frame. It saw the phase `Changing`, and so did not mark the
                // count as out of date.
                self.set(Members::Uncounted).add(block);
            }
            return false;
        }
        self.leave_set_of(block, before);
        self.uncount(block);
        let zone = self.zone_at(block);
        count::<A>(&self.share_at(zone.id, CpuId(0)).counters.closed);
        if before.has_bad() {
            // All frames are free, so none is out of service.
            BadBits::of(&self.bad, block).into_iter().for_each(BadBits::clear);
        }
        if self.make_whole(block) {
            match keeper.filter(|_| self.steers()) {
                Some(cpu) => self.add_to_stock(cpu, zone, block),
                None => self.publish(block),
            }
        }
        true
    }

    /// Counts the free frames of an unreserved pageblock in its zone.
    ///
    /// Race: another CPU frees a frame during the count. This CPU sets `counted` in the state before it
    /// begins to count. So the freeing CPU sees `counted`, and marks the count as out of date.
    pub(super) fn count_free(&self, block: BlockIndex) {
        if self.states[block].update::<A>(|state| state.is_idle().then(|| state.counted(true))).is_err() {
            return;
        }
        self.recount(block, self.rows[block].free());
        if !self.states[block].get().is_idle() {
            // Race: another CPU has reserved or isolated the pageblock, and uncounted it before this CPU had
            // counted it.
            self.uncount(block);
        }
    }

    fn recount(&self, block: BlockIndex, free: usize) {
        let before =
            update::<A, _>(&self.states[block].counted_frames, SeqCst, |_| Some(free as u32)).unwrap_or(0);
        self.zone_at(block).recount::<A>(before, free as u32);
    }

    /// Removes a pageblock's frames from the zone's count.
    pub(super) fn uncount(&self, block: BlockIndex) {
        if self.states[block].counted_frames.load(SeqCst) != 0 {
            self.recount(block, 0);
        }
    }

    /// Lowers the zone's count after frames were taken: the zone must not count more frames than are free.
    pub(super) fn note_taken(&self, block: BlockIndex, frames: u32) {
        let counted = &self.states[block].counted_frames;
        if counted.load(Relaxed) != 0 {
            let take = |counted: u32| Some(counted.saturating_sub(frames));
            if let Ok(before) = update::<A, _>(counted, SeqCst, take) {
                self.zone_at(block).recount::<A>(before, before.saturating_sub(frames));
            }
        }
    }

    /// Counts each pageblock again that had a free since it was counted last. O(number of such pageblocks).
    pub(super) fn count_frees(&self, zone: &Zone) {
        let uncounted = self.set(Members::Uncounted);
        // At most one round, because other CPUs may free without end.
        for _ in zone.blocks.clone() {
            let Some(block) = uncounted.find(&zone.blocks, zone.blocks.start) else { return };
            uncounted.remove(block);
            self.count_free(block);
        }
    }

    /// Whether at least this many frames of a zone are free. Free frames of reserved pageblocks do not count.
    pub(super) fn is_free_at_least(&self, zone: &Zone, frames: u64) -> bool {
        zone.free_at_least() >= frames || {
            self.count_frees(zone);
            zone.free_at_least() >= frames
        }
    }
}

const _: () = assert!(PAGEBLOCK_ORDER <= 16, "a bit for each order, where the owner is otherwise");
