//! Single frames of one pageblock whose owner still allocates from it: a bit each, until the owner has left it or all are here.
//!
//! If they went back earlier, owner and freer would meet at the pageblock's line again and again.

use pageset_core::MigrateType;

use crate::atomic::{AtomicU32, AtomicUsize, Relaxed, array, constant};
use crate::free_bits::{FRAMES, WORD_FRAMES, WORDS};
use crate::stack::BlockIndex;

/// No pageblock.
const NONE: u32 = u32::MAX;

/// What a CPU collects. Only who holds the CPU's kept blocks changes it.
#[derive(Debug)]
pub(crate) struct Collected {
    block: AtomicU32,
    /// The type of its frames, by number.
    migratetype: AtomicU32,
    frames: AtomicU32,
    words: [AtomicUsize; WORDS],
}

impl Collected {
    constant! {
        pub(crate) fn new() -> Self {
            Self {
                block: AtomicU32::new(NONE),
                migratetype: AtomicU32::new(0),
                frames: AtomicU32::new(0),
                words: array!(AtomicUsize::new(0)),
            }
        }
    }

    /// Whose frames these are, if there are any.
    #[inline]
    pub(crate) fn block(&self) -> Option<BlockIndex> {
        let block = self.block.load(Relaxed);
        (block != NONE).then_some(block as usize)
    }

    #[inline]
    pub(crate) fn frames(&self) -> usize {
        self.frames.load(Relaxed) as usize
    }

    /// Whether there is a frame of this type.
    #[inline]
    pub(crate) fn has(&self, migratetype: MigrateType) -> bool {
        self.frames() > 0 && self.migratetype.load(Relaxed) as usize == migratetype.index()
    }

    /// Whether all frames of the pageblock are here.
    pub(crate) fn is_whole(&self) -> bool {
        self.frames() == FRAMES
    }

    /// From now on frames of this pageblock are collected. What was collected before must have been [taken](Self::take).
    pub(crate) fn begin(&self, block: BlockIndex, migratetype: MigrateType) {
        self.block.store(block as u32, Relaxed);
        self.migratetype.store(migratetype.index() as u32, Relaxed);
    }

    /// Adds frames of one word, as bits. `false` if one of them is here: nothing is changed then.
    #[inline]
    pub(crate) fn add(&self, word: usize, frames: usize) -> bool {
        let before = self.words[word].load(Relaxed);
        if before & frames != 0 {
            return false;
        }
        self.words[word].store(before | frames, Relaxed);
        self.frames.store(self.frames.load(Relaxed).saturating_add(frames.count_ones()), Relaxed);
        true
    }

    /// Takes the lowest frame, if they are of this type: its index in the zone's table.
    pub(crate) fn pop(&self, migratetype: MigrateType) -> Option<u32> {
        if !self.has(migratetype) {
            return None;
        }
        let block = self.block()?;
        let (word, bits) = self.words().find(|(_, bits)| *bits != 0)?;
        let bit = bits.trailing_zeros() as usize;
        self.words[word].store(bits & (bits - 1), Relaxed);
        self.frames.store(self.frames.load(Relaxed).saturating_sub(1), Relaxed);
        Some((block * FRAMES + word * WORD_FRAMES + bit) as u32)
    }

    /// Takes all frames, as words of bits. Nothing is collected from then on.
    pub(crate) fn take(&self) -> [usize; WORDS] {
        self.block.store(NONE, Relaxed);
        self.frames.store(0, Relaxed);
        core::array::from_fn(|word| self.words[word].swap(0, Relaxed))
    }

    /// The indices of the frames. Exact only while nobody changes them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let first = self.block.load(Relaxed).saturating_mul(FRAMES as u32);
        let bits = |(word, bits): (usize, usize)| {
            (0..WORD_FRAMES).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * WORD_FRAMES + bit)
        };
        self.words().flat_map(bits).map(move |frame| first.saturating_add(frame as u32))
    }

    /// Whether it has as many frames as it counts, and those of a pageblock.
    pub(crate) fn is_sound(&self) -> bool {
        let frames = self.words().map(|(_, bits)| bits.count_ones() as usize).sum();
        self.frames() == frames && (self.block().is_some() || frames == 0)
    }

    fn words(&self) -> impl Iterator<Item = (usize, usize)> {
        self.words.iter().map(|word| word.load(Relaxed)).enumerate()
    }

    /// Its counts, to be damaged.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &AtomicU32> {
        [&self.block, &self.frames].into_iter()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn frames_are_taken_once() {
        let collected = Collected::new();
        assert_eq!((collected.block(), collected.frames(), collected.is_sound()), (None, 0, true));
        collected.begin(7, MigrateType::Movable);
        assert!(collected.add(0, 0b1100) && collected.add(WORDS - 1, 1));
        assert!(!collected.add(0, 0b1000), "it is here already");
        let first = 7 * FRAMES as u32;
        let last = first + ((WORDS - 1) * WORD_FRAMES) as u32;
        assert_eq!(collected.iter().collect::<Vec<_>>(), [first + 2, first + 3, last]);
        assert_eq!(collected.pop(MigrateType::Unmovable), None, "they are of another type");
        assert_eq!(collected.pop(MigrateType::Movable), Some(first + 2));
        assert_eq!((collected.frames(), collected.is_sound()), (2, true));
        let words = collected.take();
        assert_eq!((words[0], words[WORDS - 1]), (0b1000, 1));
        assert_eq!(
            (collected.block(), collected.frames(), collected.pop(MigrateType::Movable)),
            (None, 0, None)
        );
    }

    #[test]
    fn a_whole_pageblock_is_noticed() {
        let collected = Collected::new();
        collected.begin(0, MigrateType::Movable);
        for word in 0..WORDS {
            assert!(!collected.is_whole());
            assert!(collected.add(word, usize::MAX));
        }
        assert!(collected.is_whole() && collected.is_sound());
    }
}
