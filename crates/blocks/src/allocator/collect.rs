//! Frees to a pageblock from which another CPU allocates at the moment: they wait until that CPU has left it, or until all of its
//! frames are there.
//!
//! A consumer would meet its producer at the pageblock's line each time that it gives something back. Decision 0034 in the sources
//! says what that saves.

use pageset_core::{CpuId, Order};

use super::keep::{KeepOutcome, Together};
use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::{CpuLists, Wanted, count};
use crate::free_bits::{WORD_FRAMES, WORDS};
use crate::kept::{FRAMES_MAX, Held};
use crate::stack::BlockIndex;
use crate::state::{BlockState, Phase};

/// Frames of one pageblock that were freed last, from which on that pageblock is collected: of what there is room for.
const NEARLY_ALL: usize = FRAMES_MAX / 4 * 3;

/// What happens to frames of a pageblock from which another CPU allocates when frames are given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InUse {
    /// They go back, too.
    GoesBack,
    /// Those of one pageblock are collected until that CPU has left it.
    IsCollected,
}

impl BlockAllocator<'_> {
    /// Before blocks of a list go back: a pageblock that nobody else allocates from any more goes back as far as it was collected, and
    /// another one may be collected from now on.
    pub(super) fn look_what_to_collect(
        &self,
        cpu: CpuId,
        lists: &CpuLists,
        held: Held<'_>,
        wanted: Wanted,
        in_use: InUse,
    ) {
        self.give_back_left(cpu, lists, held);
        if in_use == InUse::IsCollected
            && wanted.order == Order::ZERO
            && held.collected().block().is_none()
            && let Some(block) = held.block_of_newest(wanted, NEARLY_ALL)
            && self.is_in_use_by_another(cpu, block)
        {
            held.collected().begin(block, wanted.migratetype);
        }
    }

    /// Keeps a frame, if it is one of the pageblock that the CPU collects.
    pub(super) fn collect(
        &self,
        cpu: CpuId,
        lists: &CpuLists,
        held: Held<'_>,
        index: usize,
    ) -> Option<KeepOutcome> {
        let (block, frame) = (index / FRAMES, index % FRAMES);
        if held.collected().block() != Some(block) {
            return None;
        }
        if !held.collected().add(frame / WORD_FRAMES, 1 << (frame % WORD_FRAMES)) {
            return Some(KeepOutcome::KeptBefore);
        }
        if held.collected().is_whole() {
            self.give_back_collected(cpu, lists, held);
        }
        Some(KeepOutcome::Kept)
    }

    /// Collects frames instead of giving them back. `false` if they are of another pageblock than that which is collected, or if one
    /// of them is there already.
    pub(super) fn collect_together(held: Held<'_>, together: &Together) -> bool {
        let (block, word) = together.place();
        held.collected().block() == Some(block) && held.collected().add(word, together.frames)
    }

    /// Whether another CPU allocates single pages from this pageblock, and no others do.
    fn is_in_use_by_another(&self, cpu: CpuId, block: BlockIndex) -> bool {
        self.states.get(block).map(BlockState::get).is_some_and(|state| {
            state.phase() == Phase::Current && state.owner() != cpu && state.takes_back(Order::ZERO)
        })
    }

    /// Gives back what is collected of a pageblock that nobody else allocates from any more.
    pub(super) fn give_back_left(&self, cpu: CpuId, lists: &CpuLists, held: Held<'_>) {
        if held.collected().block().is_some_and(|block| !self.is_in_use_by_another(cpu, block)) {
            self.give_back_collected(cpu, lists, held);
        }
    }

    /// Gives back what is collected: all at once, so that a line moves once.
    pub(super) fn give_back_collected(&self, cpu: CpuId, lists: &CpuLists, held: Held<'_>) {
        let Some(block) = held.collected().block() else { return };
        count(&lists.counters.given_back);
        let words = held.collected().take();
        if block >= self.free.len() {
            return count(&lists.counters.damaged);
        }
        for (word, frames) in (block * WORDS..).zip(words) {
            self.put_together(cpu, lists, Together { word, frames });
        }
    }
}
