//! Pageblocks that were split for single pages: one bit per frame.
//!
//! The core's lists keep blocks of all orders, and pay for it with links and merges for each page. Single pages that
//! move in bulk between arrays and pool need less: a whole pageblock comes from the core, its frames are bits, and when
//! all bits are set it goes back. (Measured with a million pages freed at random: 70 ns each through the core's lists.)
//! From the core's view such a pageblock is allocated.

use std::ops::Range;

use pageset_core::{PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

/// Words of a pageblock's bits.
const WORDS: usize = PAGEBLOCK_FRAMES as usize / 64;

/// The pageblocks that are split.
///
/// # Invariants
/// Bits are set only in blocks that are here, and `free` counts them. A block that is here and has bits is on `partial`.
pub(crate) struct Depot {
    /// Bit set: the frame is free, and here.
    bits: Box<[u64]>,
    blocks: Box<[Split]>,
    /// Blocks with free frames, the next to be used last; some may have none any more.
    partial: Vec<u32>,
    free: u64,
}

/// One pageblock.
#[derive(Clone, Copy, Default)]
struct Split {
    free: u16,
    is_here: bool,
    is_listed: bool,
}

/// What became of a frame that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// It is free.
    Kept,
    /// It was the last of its pageblock, which leaves the depot: free it in the core.
    Whole(u32),
    /// Its pageblock is not here.
    Foreign,
    /// It is free already.
    Twice,
}

impl Depot {
    pub(crate) fn new(frames: usize) -> Self {
        let blocks = frames / PAGEBLOCK_FRAMES as usize;
        Self {
            bits: vec![0; blocks * WORDS].into(),
            blocks: vec![Split::default(); blocks].into(),
            partial: Vec::new(),
            free: 0,
        }
    }

    /// Free frames.
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.bits) + size_of_val(&*self.blocks)
    }

    /// Adds a pageblock by its first frame, all of it free.
    pub(crate) fn add(&mut self, first: u32) {
        let block = first >> PAGEBLOCK_ORDER;
        self.words(block).fill(u64::MAX);
        self.free += u64::from(PAGEBLOCK_FRAMES);
        let split = &mut self.blocks[block as usize];
        split.is_here = true;
        split.free = PAGEBLOCK_FRAMES as u16;
        self.list(block);
    }

    /// Takes up to `limit` frames of one word: the first frame that the word stands for, and their bits. `None` if no
    /// frame is free.
    pub(crate) fn take(&mut self, limit: u32) -> Option<(u32, u64)> {
        loop {
            let block = *self.partial.last()?;
            if self.blocks[block as usize].free == 0 {
                self.blocks[block as usize].is_listed = false;
                self.partial.pop();
                continue;
            }
            let word = self.words(block).iter().position(|word| *word != 0)?;
            let bits = &mut self.words(block)[word];
            let taken = lowest(*bits, limit);
            *bits &= !taken;
            self.blocks[block as usize].free -= taken.count_ones() as u16;
            self.free -= u64::from(taken.count_ones());
            return Some((block * PAGEBLOCK_FRAMES + word as u32 * 64, taken));
        }
    }

    /// Frees a frame.
    pub(crate) fn give(&mut self, frame: u32) -> Given {
        let block = frame >> PAGEBLOCK_ORDER;
        let Some(split) = self.blocks.get_mut(block as usize).filter(|split| split.is_here) else {
            return Given::Foreign;
        };
        let (word, bit) = (&mut self.bits[frame as usize / 64], 1 << (frame % 64));
        if *word & bit != 0 {
            return Given::Twice;
        }
        *word |= bit;
        split.free += 1;
        self.free += 1;
        if u32::from(split.free) == PAGEBLOCK_FRAMES {
            self.forget(block);
            return Given::Whole(block * PAGEBLOCK_FRAMES);
        }
        self.list(block);
        Given::Kept
    }

    /// Whether a frame is free here.
    pub(crate) fn has(&self, frame: u32) -> bool {
        self.bits.get(frame as usize / 64).is_some_and(|word| word & 1 << (frame % 64) != 0)
    }

    /// Gives every block up: `free_range` gets the free frames. The others are the core's from now on.
    pub(crate) fn dissolve(&mut self, mut free_range: impl FnMut(Range<u32>)) {
        let blocks = std::mem::take(&mut self.partial);
        for block in blocks {
            self.blocks[block as usize].is_listed = false;
            let first = block * PAGEBLOCK_FRAMES;
            let mut frame = first;
            let end = first + PAGEBLOCK_FRAMES;
            while frame < end {
                let start = frame;
                while frame < end && self.has(frame) {
                    frame += 1;
                }
                if frame > start {
                    free_range(start..frame);
                }
                frame += 1;
            }
            self.forget(block);
        }
        // Blocks without a free frame are not listed.
        self.blocks.iter_mut().for_each(|split| split.is_here = false);
    }

    fn forget(&mut self, block: u32) {
        self.words(block).fill(0);
        let split = &mut self.blocks[block as usize];
        self.free -= u64::from(split.free);
        split.free = 0;
        split.is_here = false;
    }

    fn list(&mut self, block: u32) {
        let split = &mut self.blocks[block as usize];
        if !split.is_listed {
            split.is_listed = true;
            self.partial.push(block);
        }
    }

    fn words(&mut self, block: u32) -> &mut [u64] {
        &mut self.bits[block as usize * WORDS..][..WORDS]
    }
}

/// The lowest `limit` bits that are set.
fn lowest(bits: u64, limit: u32) -> u64 {
    if bits.count_ones() <= limit {
        return bits;
    }
    let mut rest = bits;
    for _ in 0..limit {
        rest &= rest - 1;
    }
    bits & !rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_and_go_and_the_last_one_brings_the_block() {
        let mut depot = Depot::new(2048);
        assert_eq!(depot.take(8), None);
        depot.add(512);
        assert_eq!(depot.take(3), Some((512, 0b111)));
        assert_eq!(depot.take(64), Some((512, u64::MAX << 3)));
        assert_eq!(depot.free(), 448);
        assert_eq!(depot.give(513), Given::Kept);
        assert_eq!(depot.give(513), Given::Twice);
        assert_eq!(depot.give(5), Given::Foreign);
        assert!(depot.has(513) && !depot.has(512));
        for frame in (512..576).filter(|frame| *frame != 513) {
            let last = frame == 575;
            assert_eq!(depot.give(frame), if last { Given::Whole(512) } else { Given::Kept });
        }
        assert_eq!((depot.free(), depot.take(1)), (0, None));
        assert_eq!(depot.give(513), Given::Foreign);
    }

    #[test]
    fn dissolved_blocks_leave_their_free_frames() {
        let mut depot = Depot::new(2048);
        depot.add(0);
        depot.add(1024);
        while depot.free() > 512 {
            depot.take(64);
        }
        depot.give(1030);
        let mut ranges = Vec::new();
        depot.dissolve(|range| ranges.push(range));
        ranges.sort_by_key(|range| range.start);
        assert_eq!(ranges, [0..512, 1030..1031]);
        assert_eq!((depot.free(), depot.give(1031)), (0, Given::Foreign));
    }
}
