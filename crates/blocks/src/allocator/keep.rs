//! Frees to other CPUs' pageblocks: the CPU keeps such blocks for its own requests, and gives back the oldest, many at a time.
//!
//! A bit that is set in another CPU's pageblock moves a cache line from that CPU to this one, and back. Blocks that are kept
//! move nothing. Those that are given back together lie together, mostly, and move a line once.

use pageset_core::{CpuId, Order, ZoneId};

use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::{CpuLists, Wanted, count};
use crate::free_bits::WORD_FRAMES;
use crate::kept::{Held, Ring};
use crate::state::State;

/// What happens to blocks that a CPU frees to another CPU's pageblock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteFrees {
    /// The CPU keeps them for its own requests, up to 256 frames of each order up to 3 and each type, and gives back
    /// the rest in halves. A block that is freed twice so is found when it is given back, and counted.
    #[default]
    Kept,
    /// They go back at once. Every double free is an error.
    AtOnce,
}

impl<'a> BlockAllocator<'a> {
    /// The same allocator with another rule for frees to other CPUs' pageblocks. Default: [`RemoteFrees::Kept`].
    #[must_use]
    pub fn with_remote_frees(mut self, rule: RemoteFrees) -> Self {
        self.remote_frees = rule;
        self
    }

    /// Keeps a block that is another CPU's, if it may be kept.
    pub(super) fn keep(&self, cpu: CpuId, zone: ZoneId, state: State, order: Order, index: usize) -> bool {
        let Ok(frame) = u32::try_from(index) else { return false };
        if self.remote_frees != RemoteFrees::Kept || !self.is_known(cpu) {
            return false;
        }
        let lists = self.lists_at(zone, cpu);
        let Some(ring) = lists.kept(Wanted { order, migratetype: state.migratetype() }) else { return false };
        let kept = ring.try_with(|mut held| {
            if held.is_full() {
                let half = held.half();
                self.give_back(cpu, lists, &mut held, order, half);
            }
            held.push(frame);
        });
        kept.is_some()
    }

    /// The block that this CPU freed last of those that it keeps.
    pub(super) fn take_kept(&self, lists: &CpuLists, wanted: Wanted) -> Option<usize> {
        let ring = lists.kept(wanted)?;
        if ring.len() == 0 {
            return None;
        }
        ring.try_with(|mut held| held.pop_last()).flatten().map(|frame| frame as usize)
    }

    /// Gives back the oldest blocks.
    fn give_back(&self, cpu: CpuId, lists: &CpuLists, held: &mut Held<'_>, order: Order, blocks: usize) {
        count(&lists.counters.given_back);
        let mut together = Together::default();
        for frame in (0..blocks).map_while(|_| held.pop_first()) {
            let index = frame as usize;
            if order == Order::ZERO && together.add(index) {
                continue;
            }
            self.put_together(cpu, lists, core::mem::take(&mut together));
            if order == Order::ZERO {
                together.add(index);
            } else {
                let (block, frame) = (index / FRAMES, index % FRAMES);
                self.note_line(block, cpu);
                match self.free[block].put(frame, order) {
                    Ok(free) => self.note_free(block, order, free),
                    Err(_) => count(&lists.counters.double_frees),
                }
            }
        }
        self.put_together(cpu, lists, together);
    }

    fn put_together(&self, cpu: CpuId, lists: &CpuLists, together: Together) {
        if together.frames == 0 {
            return;
        }
        let (block, word) = (together.word / (FRAMES / WORD_FRAMES), together.word % (FRAMES / WORD_FRAMES));
        self.note_line(block, cpu);
        if let Ok(free) = self.free[block].put_frames(word, together.frames) {
            return self.note_free(block, Order::ZERO, free);
        }
        // One of them is free already. The others are not its fault.
        for bit in (0..WORD_FRAMES).filter(|bit| together.frames >> bit & 1 == 1) {
            match self.free[block].put_frames(word, 1 << bit) {
                Ok(free) => self.note_free(block, Order::ZERO, free),
                Err(_) => count(&lists.counters.double_frees),
            }
        }
    }

    /// Gives back everything that a CPU keeps of a zone, unless somebody is at it.
    pub(super) fn give_back_all(&self, zone: ZoneId, cpu: CpuId) {
        let lists = self.lists_at(zone, cpu);
        for (order, ring) in lists.all_kept().filter(|(_, ring)| ring.len() > 0) {
            ring.try_with(|mut held| self.give_back(cpu, lists, &mut held, order, usize::MAX));
        }
    }

    /// Frames that all CPUs keep of a zone.
    pub(super) fn kept_in(&self, zone: ZoneId) -> usize {
        let of_cpu = |cpu: usize| {
            let kept = self.lists_at(zone, CpuId(cpu as u32)).all_kept();
            kept.map(|(order, ring): (Order, Ring<'_>)| ring.len() << order.get()).sum::<usize>()
        };
        (0..self.cpus()).map(of_cpu).sum()
    }
}

/// Single frames of one word.
#[derive(Debug, Default)]
struct Together {
    /// Its number, over all pageblocks.
    word: usize,
    frames: usize,
}

impl Together {
    /// Adds a frame, if it lies in the same word and is not there yet.
    fn add(&mut self, index: usize) -> bool {
        let (word, frame) = (index / WORD_FRAMES, 1 << (index % WORD_FRAMES));
        if self.frames != 0 && (self.word != word || self.frames & frame != 0) {
            return false;
        }
        self.word = word;
        self.frames |= frame;
        true
    }
}
