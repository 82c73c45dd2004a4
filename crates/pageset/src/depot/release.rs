//! Out of the depot for good: whole pageblocks are released, split ones dissolved. The base has their free frames then.

use std::cmp::Reverse;
use std::ops::Range;

use pageset_core::{PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

use super::Depot;
use super::pageblock::Place;

impl Depot {
    /// Hands out the whole pageblocks that were not needed since the last call, by their first frames, but keeps `kept`.
    pub(crate) fn release_unused(&mut self, kept: usize, release: impl FnMut(u32)) {
        self.release(self.whole_min.min(self.whole.len().saturating_sub(kept)), release);
        self.whole_min = self.whole.len();
    }

    /// Hands out all whole pageblocks but the `kept` lowest by their first frames. The lowest are resident for certain:
    /// among those that were freed last may be one that was never touched, since half an array was filled from it.
    pub(crate) fn release_whole(&mut self, kept: usize, release: impl FnMut(u32)) {
        let released = self.whole.len().saturating_sub(kept);
        if kept > 0 && released > 0 {
            self.whole.select_nth_unstable_by_key(released, |block| Reverse(*block));
            self.whole[released..].sort_unstable_by_key(|block| Reverse(*block));
        }
        self.release(self.whole.len().saturating_sub(kept), release);
        self.whole_min = self.whole.len();
    }

    /// Hands out the `count` whole pageblocks that came first.
    fn release(&mut self, count: usize, mut release: impl FnMut(u32)) {
        for block in self.whole.drain(..count) {
            self.free -= u64::from(PAGEBLOCK_FRAMES);
            self.blocks[block as usize].place = Place::Elsewhere;
            release(block * PAGEBLOCK_FRAMES);
        }
    }

    /// Gives up the pageblock with this frame: from now on the base knows who has it. If it is split, `free_range` gets its
    /// free frames.
    pub(crate) fn dissolve(&mut self, frame: u32, mut free_range: impl FnMut(Range<u32>)) {
        let block = frame >> PAGEBLOCK_ORDER;
        let Some(pageblock) = self.blocks.get_mut(block as usize) else { return };
        if pageblock.place == Place::Owned {
            pageblock.place = Place::Elsewhere;
        }
        let Place::Split(class) = pageblock.place else { return };
        let bits = &mut self.bits[block as usize];
        let end = (block + 1) * PAGEBLOCK_FRAMES;
        let mut frame = block * PAGEBLOCK_FRAMES;
        while frame < end {
            let start = frame;
            while frame < end && pageblock.has(bits, frame) {
                frame += class.frames();
            }
            if frame > start {
                free_range(start..frame);
            }
            frame += class.frames();
        }
        if !pageblock.is_reserved {
            self.partial[class as usize].remove(block);
        }
        self.free -= u64::from(bits.count() * class.frames());
        pageblock.unsplit(bits, class, Place::Dissolved);
    }

    /// Gives up every pageblock that is split and of which a part is free.
    pub(crate) fn dissolve_all(&mut self, mut free_range: impl FnMut(Range<u32>)) {
        for block in 0..self.blocks.len() as u32 {
            if self.bits[block as usize].has_any() {
                self.dissolve(block * PAGEBLOCK_FRAMES, &mut free_range);
            }
        }
    }
}
