//! Moves pages so that pageblocks become free. Linux's background compaction runs alone, or after the rule of
//! the RFC of 2026 for units of 1 GiB.
//!
//! The model of both rules is simple: it knows the place of each page, and a move takes no time. The cost of
//! a rule is the number of pages that the rule moves.

use pageset_core::{FrameAllocator, PAGEBLOCK_FRAMES};

use super::census::{UNIT_FRAMES, Use};
use super::memory::Memory;

/// The rule that decides which pages are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compaction {
    /// No page is moved.
    None,
    /// Linux's rule: pages move out of the lowest pageblocks, into free places of the highest pageblocks.
    /// Source: the kernel's documentation describes one scanner from each end of memory. How many pageblocks
    /// Linux's rule empties is a guess: at most 32 pageblocks in each step of the day, while less than 1 % of
    /// all pageblocks are free.
    Linux,
    /// Linux's rule and the rule of the RFC of 2026. The RFC moves pages out of a unit that is nearly full
    /// and has pages that cannot be moved. A unit is nearly full if it has at most one free pageblock, or
    /// less free memory than two pageblocks. The RFC's rule stops moving pages out of a unit when the unit
    /// has three free pageblocks.
    Rfc,
}

/// Percentage of all pageblocks. Compaction empties pageblocks while fewer pageblocks are free (guess).
const FREE_PERCENT: usize = 1;
/// Largest number of pageblocks that compaction empties in one step of the day (guess).
const EMPTIED_MAX: usize = 32;
const PAGEBLOCK: u32 = PAGEBLOCK_FRAMES;
const PER_UNIT: usize = (UNIT_FRAMES / PAGEBLOCK_FRAMES as u64) as usize;
/// Number of free pageblocks in a unit at which the RFC's rule stops moving pages.
const WANTED_PAGEBLOCKS: u32 = 3;
const SHORT_PAGEBLOCKS: u32 = 2;

/// The positions of two scanners. The first scanner finds pages to move, and the second scanner finds free
/// places for these pages.
#[derive(Debug, Default)]
pub(super) struct Scanners {
    /// The number of the next pageblock to empty.
    from: usize,
    /// The next frame to fill, counted from the end of memory.
    to: u32,
}

impl Compaction {
    pub(super) fn run<A: FrameAllocator>(self, scanners: &mut Scanners, memory: &mut Memory<'_, A>) {
        if self == Self::Rfc {
            evacuate(memory);
        }
        if self != Self::None {
            scanners.compact(memory);
        }
    }
}

impl Scanners {
    fn compact<A: FrameAllocator>(&mut self, memory: &mut Memory<'_, A>) {
        let pageblocks = memory.uses.pageblocks.len();
        let free = |of: &Use| of.frames == 0;
        let wanted = pageblocks * FREE_PERCENT / 100;
        let mut there = memory.uses.pageblocks.iter().filter(|of| free(of)).count();
        if there >= wanted {
            return;
        }
        (self.from, self.to) = (0, pageblocks as u32 * PAGEBLOCK);
        let mut emptied = 0;
        while emptied < EMPTIED_MAX && there < wanted && (self.from as u32 + 1) * PAGEBLOCK < self.to {
            let Use { frames, pinned } = memory.uses.pageblocks[self.from];
            // Pages of full pageblocks stay, because moving a huge page to another pageblock gains nothing.
            if frames > 0 && pinned == 0 && frames < PAGEBLOCK {
                if !self.empty(self.from as u32, memory) {
                    return;
                }
                (emptied, there) = (emptied + 1, there + 1);
            }
            self.from += 1;
        }
    }

    /// Moves all pages out of a pageblock. Returns `false` if the scanner finds no free place above the
    /// pageblock for one of the pages.
    fn empty<A: FrameAllocator>(&mut self, pageblock: u32, memory: &mut Memory<'_, A>) -> bool {
        let first = pageblock * PAGEBLOCK;
        (first..first + PAGEBLOCK)
            .all(|pfn| memory.move_away(pfn, |memory, order| self.place(memory, order, first + PAGEBLOCK)))
    }

    fn place<A: FrameAllocator>(&mut self, memory: &Memory<'_, A>, order: u8, end: u32) -> Option<u32> {
        let frames = 1 << order;
        while self.to >= end + frames {
            let at = (self.to - frames) / frames * frames;
            let Use { frames: used, pinned } = memory.uses.pageblocks[(at / PAGEBLOCK) as usize];
            if pinned > 0 || used == PAGEBLOCK || used == 0 {
                self.to = at / PAGEBLOCK * PAGEBLOCK;
                continue;
            }
            self.to = at;
            if memory.take_at(at, order) {
                return Some(at);
            }
        }
        None
    }
}

/// Moves pages out of units that are nearly full and hold pages that cannot be moved.
fn evacuate<A: FrameAllocator>(memory: &mut Memory<'_, A>) {
    for unit in 0..memory.uses.units.len() {
        let Use { frames, pinned } = memory.uses.units[unit];
        let pageblocks = unit * PER_UNIT..(unit + 1) * PER_UNIT;
        let whole = memory.uses.pageblocks[pageblocks.clone()].iter().filter(|of| of.frames == 0).count();
        let free = UNIT_FRAMES as u32 - frames;
        if pinned == 0 || whole > 1 && free >= SHORT_PAGEBLOCKS * PAGEBLOCK {
            continue;
        }
        let mut candidates: Vec<_> = pageblocks
            .filter(|at| {
                let of = memory.uses.pageblocks[*at];
                of.pinned == 0 && of.frames > 0
            })
            .collect();
        candidates.sort_by_key(|at| memory.uses.pageblocks[*at].frames);
        let wanted = (WANTED_PAGEBLOCKS as usize).saturating_sub(whole);
        for pageblock in candidates.into_iter().take(wanted) {
            let first = pageblock as u32 * PAGEBLOCK;
            let is_empty = (first..first + PAGEBLOCK).all(|pfn| {
                memory.move_away(pfn, |memory, order| {
                    memory.take_any(order, |to| memory.uses.units[(to / UNIT_FRAMES) as usize].pinned == 0)
                })
            });
            if !is_empty {
                break;
            }
        }
    }
}
