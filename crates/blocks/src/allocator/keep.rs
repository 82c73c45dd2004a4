//! Frees to other CPUs' pageblocks: the CPU keeps such blocks for its own requests, and gives back many at a time.
//!
//! A bit that is set in another CPU's pageblock moves a cache line from that CPU to this one, and back. Blocks that are kept
//! move nothing. Those that are given back together lie together, mostly, and move a line once.

use pageset_core::{CpuId, FreeError, Order, Pfn, ZoneId};

use super::collect::InUse;
use super::free::Back;
use super::mixed::frames_of_word;
use super::refill::Needy;
use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::{CpuLists, Wanted, count};
use crate::free_bits::{WORD_FRAMES, WORDS};
use crate::kept::{FRAMES_MAX, Held, Kept};
use crate::stack::BlockIndex;
use crate::state::State;
use crate::zone::Zone;

/// Frames of a type and order that a CPU keeps when one more is freed to a mixed pageblock, at most. Decision 0029 in the sources
/// compares numbers. A part of what is kept, as small as that is for model checkers.
const KEPT_OF_MIXED: usize = if cfg!(shuttle) { 4 } else { 64 };

/// What happens to blocks that a CPU frees to another CPU's pageblock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteFrees {
    /// They go back at once. Every double free is an error.
    #[default]
    AtOnce,
    /// The CPU keeps those up to order 3 for its own requests, 256 frames of a zone at most. Then it gives back those of the type
    /// and order that it has most of; but single ones of one pageblock from which another CPU allocates at the moment, 512 at most,
    /// when that CPU has left it. Blocks of pageblocks that several CPUs share are kept likewise, whichever CPU frees them; and a
    /// CPU takes some of those ahead for its next requests.
    ///
    /// This saves cache lines that pass between CPUs. Its price: if two CPUs free the same block, both frees may succeed, and the
    /// block may be handed out **twice** before the allocator finds that. It finds it when one of the two gives the block back, and
    /// [counts](crate::BlockCounters::double_frees) it; if both were handed out and freed again, never. So this rule is for hosts
    /// whose own types make a double free impossible. A second free by the same CPU, and every wrong range, is an error here too.
    Kept,
}

/// What became of a block that a CPU should keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepOutcome {
    /// The CPU keeps it.
    Kept,
    /// It is not one that may be kept, or somebody else is there.
    Refused,
    /// The CPU keeps it already: it was freed twice.
    KeptBefore,
}

impl KeepOutcome {
    /// Whether the free of this block is done with that.
    pub(super) fn is_kept(self, pfn: Pfn) -> Result<bool, FreeError> {
        match self {
            Self::Kept => Ok(true),
            Self::Refused => Ok(false),
            Self::KeptBefore => Err(FreeError::DoubleFree(pfn)),
        }
    }
}

impl BlockAllocator<'_> {
    /// Keeps a block that is another CPU's, if it may be kept.
    pub(super) fn keep(
        &self,
        cpu: CpuId,
        zone: ZoneId,
        state: State,
        order: Order,
        index: usize,
    ) -> KeepOutcome {
        if self.parts.remote_frees != RemoteFrees::Kept || !Kept::keeps(order) {
            return KeepOutcome::Refused;
        }
        let (Ok(frame), Some(wanted)) = (u32::try_from(index), Wanted::of_split(state.of_order(order)))
        else {
            return KeepOutcome::Refused;
        };
        let lists = self.lists_at(zone, cpu);
        let keep = |held: Held<'_>| {
            let collect = || if order == Order::ZERO { self.collect(cpu, lists, held, index) } else { None };
            if let Some(outcome) = collect() {
                return outcome;
            }
            // There are few of these, and a CPU seldom frees many of them.
            if state.is_mixed() && held.contains(wanted, frame) {
                return KeepOutcome::KeptBefore;
            }
            // Of what a CPU needs few, it keeps few.
            if state.is_mixed() && held.blocks(wanted) << order.get() >= KEPT_OF_MIXED {
                self.give_back(cpu, lists, held, wanted, InUse::GoesBack);
            }
            if held.push(wanted, frame) {
                return KeepOutcome::Kept;
            }
            if let Some(largest) = held.largest() {
                self.give_back(cpu, lists, held, largest, InUse::IsCollected);
            }
            let push = || if held.push(wanted, frame) { KeepOutcome::Kept } else { KeepOutcome::Refused };
            collect().unwrap_or_else(push)
        };
        lists.activity.note();
        lists.kept.try_with(keep).unwrap_or(KeepOutcome::Refused)
    }

    /// Keeps what was taken of a word of a mixed pageblock, but for the first block, which it returns.
    pub(super) fn keep_all_but_first(
        &self,
        block: BlockIndex,
        word: usize,
        heads: usize,
        needy: Needy<'_>,
    ) -> usize {
        let order = needy.wanted.order;
        let index = |frame: usize| block * FRAMES + frame;
        let keep = |frame: usize| {
            let push = |held: Held<'_>| held.push(needy.wanted, index(frame) as u32);
            needy.lists.kept.try_with(push).unwrap_or(false)
        };
        // The highest first, so that the lowest are the next ones.
        for frame in frames_of_word(word, heads & (heads - 1)).filter(|frame| !keep(*frame)) {
            self.tails[block].clear_frames(frame..frame + order.frames() as usize);
            self.return_frames(block, frame, order);
        }
        index(word * WORD_FRAMES + heads.trailing_zeros() as usize)
    }

    /// The block that this CPU freed last of those that it keeps.
    pub(super) fn take_kept(&self, lists: &CpuLists, wanted: Wanted) -> Option<usize> {
        if !lists.kept.has(wanted) {
            return None;
        }
        let frame = lists.kept.try_with(|held| held.pop_any(wanted)).flatten()?;
        lists.cursor(wanted).note_kept();
        Some(frame as usize)
    }

    /// Gives back all blocks of a list: many at a time, so that a line moves once for many of them.
    fn give_back(&self, cpu: CpuId, lists: &CpuLists, held: Held<'_>, wanted: Wanted, in_use: InUse) {
        count(&lists.counters.given_back);
        let mut together = Together::default();
        let order = wanted.order;
        self.look_what_to_collect(cpu, lists, held, wanted, in_use);
        let put = |together: Together| {
            if in_use == InUse::GoesBack || !Self::collect_together(held, &together) {
                self.put_together(cpu, lists, together);
            }
        };
        // No more than there can be: a count that is damaged keeps nobody here.
        for frame in core::iter::from_fn(|| held.pop(wanted)).take(FRAMES_MAX) {
            let index = frame as usize;
            if index / FRAMES >= self.free.len() {
                count(&lists.counters.damaged);
                continue;
            }
            if order == Order::ZERO && together.add(index) {
                continue;
            }
            put(core::mem::take(&mut together));
            if order == Order::ZERO {
                together.add(index);
            } else {
                let (block, frame) = (index / FRAMES, index % FRAMES);
                self.note_line(block, cpu);
                if self.states[block].get().is_mixed() {
                    self.cut_off(block, frame..frame + order.frames() as usize);
                }
                if self.put_block(block, frame, order).is_err() {
                    count(&lists.counters.double_frees);
                }
            }
        }
        put(together);
        if held.blocks(wanted) > 0 {
            held.forget(wanted);
            count(&lists.counters.damaged);
        }
    }

    pub(super) fn put_together(&self, cpu: CpuId, lists: &CpuLists, together: Together) {
        if together.frames == 0 {
            return;
        }
        let (block, word) = together.place();
        self.note_line(block, cpu);
        let put = |frames| {
            let free = self.free[block].put_frames(word, frames)?;
            self.note_free(block, Order::ZERO, Back::of_word(word, frames, free))
        };
        if put(together.frames).is_ok() {
            return;
        }
        // One of them is free already. The others are not its fault.
        for bit in (0..WORD_FRAMES).filter(|bit| together.frames >> bit & 1 == 1) {
            if put(1 << bit).is_err() {
                count(&lists.counters.double_frees);
            }
        }
    }

    /// Gives back everything that CPUs keep of a zone, but for what somebody is at.
    pub(super) fn give_back_of_all(&self, zone: &Zone) {
        (0..self.cpus()).for_each(|cpu| self.give_back_all(zone.id, CpuId(cpu as u32)));
    }

    /// Gives back everything that a CPU keeps of a zone, unless somebody is at it.
    pub(super) fn give_back_all(&self, zone: ZoneId, cpu: CpuId) {
        let lists = self.lists_at(zone, cpu);
        lists.kept.try_with(|held| {
            while let Some(wanted) = held.largest() {
                self.give_back(cpu, lists, held, wanted, InUse::GoesBack);
            }
            self.give_back_collected(cpu, lists, held);
        });
    }

    /// Frames that all CPUs keep of a zone.
    pub(super) fn kept_in(&self, zone: ZoneId) -> usize {
        (0..self.cpus()).map(|cpu| self.lists_at(zone, CpuId(cpu as u32)).kept.frames()).sum()
    }
}

/// Frames of one word: single ones, or the first ones of blocks.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Its number, over all pageblocks.
    pub(super) word: usize,
    pub(super) frames: usize,
}

impl Together {
    /// One frame.
    #[inline]
    pub(super) const fn of(index: usize) -> Self {
        Self { word: index / WORD_FRAMES, frames: 1 << (index % WORD_FRAMES) }
    }

    /// Its pageblock, and the word in it.
    pub(super) const fn place(&self) -> (BlockIndex, usize) {
        (self.word / WORDS, self.word % WORDS)
    }

    /// The indices of the frames.
    pub(super) fn indices(&self) -> impl Iterator<Item = usize> {
        let first = self.word * WORD_FRAMES;
        (0..WORD_FRAMES).filter(|bit| self.frames >> bit & 1 == 1).map(move |bit| first + bit)
    }

    /// Adds a frame, if it lies in the same word and is not there yet.
    #[inline]
    pub(super) fn add(&mut self, index: usize) -> bool {
        let (word, frame) = (index / WORD_FRAMES, 1 << (index % WORD_FRAMES));
        if self.frames != 0 && (self.word != word || self.frames & frame != 0) {
            return false;
        }
        self.word = word;
        self.frames |= frame;
        true
    }
}
