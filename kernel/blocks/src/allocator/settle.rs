//! Settles unreserved pageblocks after frees. A free only notes that its pageblock is *unsettled*, unless all
//! frames of the pageblock are free now. A CPU *settles* the pageblock before it searches for free blocks: it
//! reads the rows, and makes the pageblock whole or moves it to the set of its largest free block. So many
//! frees together cost one change of the sets.
//!
//! An open pageblock in service that no CPU reserves is in one of four conditions:
//!
//! - The pageblock is settled.
//! - The pageblock is in the set of unsettled pageblocks.
//! - A CPU keeps the unsettled pageblock in its `CpuShare`.
//! - A CPU is about to settle the pageblock, or to add it to the set.

use pageset_core::{CpuId, Order, PAGEBLOCK_ORDER};

use super::BlockAllocator;
use super::sets::Members;
use crate::access::{Access, update};
use crate::atomic::{Relaxed, SeqCst};
use crate::bad_bits::BadBits;
use crate::cpu_share::{CpuShare, KEPT_MAX, count};
use crate::ids::{BlockId, each};
use crate::index::Several;
use crate::row::{ROW_ORDER, Row};
use crate::state::{BlockState, Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Makes a pageblock unsettled if necessary, after a CPU freed a block of it. `row` is the block's row
    /// after the free. Returns the state of the pageblock.
    ///
    /// Race: this CPU frees a frame, then reads the state. Another CPU gives up or settles the pageblock:
    /// that CPU changes the state, then reads the rows. At least one of the two CPUs sees the other CPU's
    /// change. So the other CPU finds the frame, or this CPU makes the pageblock unsettled.
    #[inline]
    pub(super) fn note_free(&self, cpu: CpuId, block: BlockId, row: Row) -> State {
        let state = self.state(block).get();
        self.note_free_of(cpu, block, state, row);
        state
    }

    /// Does the same as [`note_free`](Self::note_free) for a caller that read `state` after the free.
    #[inline(always)]
    pub(super) fn note_free_of(&self, cpu: CpuId, block: BlockId, state: State, row: Row) {
        if state.needs_look(row) {
            self.unsettle(block, state, Some(cpu));
        }
    }

    /// Does the same as [`note_free`](Self::note_free), after frames in any row of the pageblock may have
    /// become free.
    #[cold]
    pub(super) fn note_rows(&self, block: BlockId) {
        let state = self.state(block).get();
        if state.needs_look(Row::FREE) {
            self.unsettle(block, state, None);
        }
    }

    /// Notes that a CPU tried in vain to take a block of this order.
    ///
    /// Race: this CPU took some rows of a larger block, found a row in use, and gave the taken rows back.
    /// Another CPU settled the pageblock meanwhile, and did not see the taken rows as free. So the failed
    /// attempt counts as a free, and a CPU settles the pageblock again.
    #[inline]
    pub(super) fn note_missed(&self, block: BlockId, order: Order) {
        if order.index() > ROW_ORDER {
            self.note_rows(block);
        }
    }

    /// Makes a pageblock unsettled after a free. If all frames of the pageblock are free now, makes it whole.
    /// If `keeper` is a CPU, an unsettled pageblock goes to its `CpuShare`. A whole pageblock goes to the
    /// CPU's stock, if the allocator keeps stocks.
    ///
    /// Race: several CPUs free the last frames at once. Each CPU reads the rows after its own free, so the
    /// CPU with the last free sees that all frames are free. If several CPUs see that all frames are free,
    /// the first exchange of the state in `close` wins. The other CPUs lose, and find nothing left to do.
    #[cold]
    #[inline(never)]
    fn unsettle(&self, block: BlockId, state: State, keeper: Option<CpuId>) {
        if state.is_settled() {
            let to_unsettled = |now: State| now.is_settled().then(|| now.settled(false));
            if self.state(block).update::<A>(to_unsettled).is_ok() {
                match keeper {
                    Some(cpu) => self.keep_unsettled(block, cpu),
                    None => self.add_unsettled(block),
                }
            }
        }
        if self.rows(block).is_free() {
            self.settle_for(block, keeper);
        }
    }

    /// Keeps an unsettled pageblock in a CPU's `CpuShare`. If `kept` has no room for the pageblock that was
    /// in `unsettled` before, the pageblocks in `kept` go to the set. So a CPU that frees all of a pageblock,
    /// or soon reserves the pageblock again, seldom changes the set of unsettled pageblocks.
    fn keep_unsettled(&self, block: BlockId, cpu: CpuId) {
        let share = self.share_at(self.zone_of_block(block), cpu);
        if let Some(before) = share.unsettled.replace::<A>(Some(block))
            && self.is_unsettled(before)
            && !share.kept.add::<A>(before, KEPT_MAX)
        {
            self.add_unsettled_blocks(share.kept.replace::<A>(before));
        }
    }

    /// Moves the unsettled pageblocks that a CPU keeps in its `CpuShare` to the set of unsettled pageblocks.
    pub(super) fn add_unsettled_of(&self, share: &CpuShare) {
        if let Some(block) = share.unsettled.take::<A>() {
            self.add_if_unsettled(block);
        }
        if !share.kept.is_empty() {
            self.add_unsettled_blocks(share.kept.take_all::<A>());
        }
    }

    /// Adds pageblocks to the set of unsettled pageblocks. One atomic operation sets the pageblocks' bits. A
    /// damaged `CpuShare` may name pageblocks of no zone.
    fn add_unsettled_blocks(&self, blocks: Several) {
        if { blocks }.all(|block| self.states.get(block.0).is_some()) {
            self.set(Members::Unsettled).add_several(blocks);
            #[cfg(feature = "line-counts")]
            blocks.first().into_iter().for_each(|block| self.rows(block).last_change.note_move());
        }
    }

    pub(super) fn add_if_unsettled(&self, block: BlockId) {
        if self.is_unsettled(block) {
            self.add_unsettled(block);
        }
    }

    /// Whether frames of an unreserved pageblock were freed since a CPU settled it.
    pub(super) fn is_unsettled(&self, block: BlockId) -> bool {
        self.states
            .get(block.0)
            .map(BlockState::get)
            .is_some_and(|state| state.is_idle() && !state.is_settled())
    }

    fn add_unsettled(&self, block: BlockId) {
        self.set(Members::Unsettled).add(block);
        #[cfg(feature = "line-counts")]
        self.rows(block).last_change.note_move();
    }

    /// Settles a pageblock that no CPU reserves: makes it whole if all frames are free. Otherwise counts its
    /// free frames in the zone, and moves it to the set of its largest free block.
    pub(super) fn settle(&self, block: BlockId) {
        self.settle_for(block, None);
    }

    /// Does the same as [`settle`](Self::settle). If the pageblock becomes whole and `keeper` is a CPU, the
    /// pageblock goes to the stock of this CPU, if the allocator keeps stocks.
    ///
    /// Race: another CPU frees a frame meanwhile. This CPU sets the flag `SETTLED` before it looks at the
    /// rows. So this CPU sees the frame, or the other CPU sees the flag and makes the pageblock unsettled
    /// again.
    pub(super) fn settle_for(&self, block: BlockId, keeper: Option<CpuId>) {
        let mut had_frees = false;
        loop {
            let state = self.state(block).get();
            if !state.is_idle() {
                return;
            }
            if !state.is_settled() {
                let settle = |now: State| (now == state).then(|| now.settled(true));
                if self.state(block).update::<A>(settle).is_err() {
                    continue;
                }
                had_frees = true;
            }
            let (orders, free) = self.rows(block).free_orders();
            if orders >> PAGEBLOCK_ORDER != 0 {
                if self.close(block, keeper) {
                    return;
                }
                // Race: another CPU has taken a frame, or is changing the pageblock. This CPU loses, and
                // looks again.
                continue;
            }
            let is_same = |now: State| now.is_idle() && now.is_like(state) && now.orders() == state.orders();
            let note = |now: State| is_same(now).then(|| now.with_orders(orders));
            if orders != state.orders() && self.state(block).update::<A>(note).is_err() {
                continue;
            }
            let settled = state.with_orders(orders);
            self.move_between_sets(block, state, settled);
            if settled.mark() < state.mark() && A::IS_SHARED {
                // Race: another CPU settled the pageblock after this CPU looked at its rows, and saw a larger
                // free block. The older look loses: this CPU looks again.
                continue;
            }
            // Without frees, the count is right, because each CPU that took frames has lowered the count.
            if !had_frees {
                return;
            }
            self.recount(block, free);
            if !self.state(block).get().is_idle() {
                // Race: another CPU has reserved or isolated the pageblock, and uncounted it before this CPU
                // counted it. So this CPU takes its own count back.
                self.uncount(block);
            }
            return;
        }
    }

    fn move_between_sets(&self, block: BlockId, before: State, now: State) {
        if now.mark() == before.mark() {
            return;
        }
        #[cfg(feature = "line-counts")]
        self.rows(block).last_change.note_move();
        if let Some(order) = now.mark().checked_sub(1) {
            self.set_of(now.type_index(), order).add(block);
        }
        self.leave_set_of(block, before);
    }

    /// Makes an open pageblock whole, if all of its frames are free.
    fn close(&self, block: BlockId, keeper: Option<CpuId>) -> bool {
        let begin = |state: State| state.is_idle().then(|| state.in_phase(Phase::Changing));
        let Ok(before) = self.state(block).update::<A>(begin) else { return false };
        if !self.rows(block).close() {
            // Race: another CPU found the pageblock in its set, saw the phase `Changing`, and removed the
            // pageblock from the set. So the new state says that the pageblock is in no set. Race: another
            // CPU freed a frame, saw the phase `Changing`, and did not mark the pageblock as unsettled. So
            // the pageblock becomes unsettled.
            let reopened = self
                .state(block)
                .update::<A>(|state| Some(state.in_phase(Phase::Open).with_orders(0).settled(false)));
            self.leave_set_of(block, before);
            self.add_unsettled(block);
            if reopened.is_ok_and(|state| state.is_isolated()) {
                // Race: another CPU took the pageblock out of service. The other CPU did not uncount the
                // pageblock, because the phase was `Changing`. So this CPU uncounts the pageblock.
                self.uncount(block);
            }
            return false;
        }
        self.leave_set_of(block, before);
        self.uncount(block);
        let zone = self.zone_at(block);
        count::<A>(&self.share_at(zone.id, CpuId(0)).counters.closed);
        if before.has_bad() {
            // All frames are free, so no frame is out of service.
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

    fn recount(&self, block: BlockId, free: usize) {
        let before =
            update::<A, _>(&self.state(block).counted_frames, SeqCst, |_| Some(free as u32)).unwrap_or(0);
        self.zone_at(block).recount::<A>(before, free as u32);
    }

    /// Removes a pageblock's frames from the zone's count.
    pub(super) fn uncount(&self, block: BlockId) {
        if self.state(block).counted_frames.load(SeqCst) != 0 {
            self.recount(block, 0);
        }
    }

    /// Lowers the zone's count after frames were taken, so that the zone does not count more frames than are
    /// free.
    pub(super) fn note_taken(&self, block: BlockId, frames: u32) {
        let counted = &self.state(block).counted_frames;
        if counted.load(Relaxed) != 0 {
            let take = |counted: u32| Some(counted.saturating_sub(frames));
            if let Ok(before) = update::<A, _>(counted, SeqCst, take) {
                self.zone_at(block).recount::<A>(before, before.saturating_sub(frames));
            }
        }
    }

    /// Settles each unsettled pageblock of a zone. O(unsettled pageblocks + CPUs).
    pub(super) fn settle_all(&self, zone: &Zone) {
        self.add_all_unsettled(zone);
        let unsettled = self.set(Members::Unsettled);
        // Visit at most as many pageblocks as the zone has, because other CPUs may free without end.
        for _ in each(&zone.blocks) {
            let Some(block) = unsettled.find(&zone.blocks, zone.blocks.start) else { return };
            unsettled.remove(block);
            self.settle(block);
        }
    }

    /// Moves the unsettled pageblocks that CPUs keep to the set of unsettled pageblocks. O(CPUs).
    pub(super) fn add_all_unsettled(&self, zone: &Zone) {
        self.shares_in(zone.id).for_each(|share| self.add_unsettled_of(share));
    }

    /// Whether at least this many frames of a zone are free. Free frames of reserved pageblocks do not count.
    pub(super) fn is_free_at_least(&self, zone: &Zone, frames: u64) -> bool {
        zone.free_at_least() >= frames || {
            self.settle_all(zone);
            zone.free_at_least() >= frames
        }
    }
}

const _: () = assert!(PAGEBLOCK_ORDER <= 16, "a bit for each order, where the owner is otherwise");
