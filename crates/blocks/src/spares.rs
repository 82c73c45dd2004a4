//! Whole pageblocks that a CPU took, or got back, and does not use.

use crate::atomic::{AtomicU32, Relaxed, SeqCst, array, constant};
use crate::stack::BlockIndex;

/// Those that a CPU keeps behind the last one, at most. Guess: 256 MiB are little beside what a CPU has that asks for so much.
/// Loom has few.
pub(crate) const SPARES: usize = if cfg!(loom) { 2 } else { 128 };

/// Whole pageblocks that a CPU takes at once at first, if there are many.
pub(crate) const CLAIM_MIN: u32 = if cfg!(loom) { 1 } else { 8 };

/// No pageblock.
const NONE: u32 = u32::MAX;

/// Pageblocks at hand: hints, since others may have taken them. Several may run as the same CPU: then a pageblock may stay where
/// nobody looks first. It is found when nothing else is, or when another one gets its place.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Spares {
    /// How many went to the ring before the oldest, and before the next one that will. They begin anew after the largest word.
    oldest: AtomicU32,
    next: AtomicU32,
    /// How many to take at once next time.
    pub(crate) claim_size: AtomicU32,
    /// The one that was freed last, then a ring of the others.
    blocks: [AtomicU32; 1 + SPARES],
}

impl Spares {
    /// Bytes of what comes before the pageblocks.
    #[cfg(all(target_pointer_width = "64", not(any(loom, shuttle))))]
    pub(crate) const NUMBERS_BYTES: usize = core::mem::offset_of!(Self, blocks);

    constant! {
        pub(crate) fn new() -> Self {
            Self {
                oldest: AtomicU32::new(0),
                next: AtomicU32::new(0),
                claim_size: AtomicU32::new(CLAIM_MIN),
                blocks: array!(AtomicU32::new(NONE)),
            }
        }
    }

    /// The one that was freed last.
    #[inline]
    pub(crate) fn last(&self) -> BlockIndex {
        self.blocks[0].load(SeqCst) as usize
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = BlockIndex> {
        self.blocks.iter().map(|block| block.load(Relaxed) as usize)
    }

    /// Takes the newest of the ring that `take` can have.
    #[inline]
    pub(crate) fn pop(&self, take: impl Fn(BlockIndex) -> bool) -> Option<BlockIndex> {
        let next = self.next.load(Relaxed);
        for back in 1..=self.kept() as u32 {
            let newest = next.wrapping_sub(back);
            let block = self.blocks[place(newest)].load(Relaxed) as usize;
            if take(block) {
                self.next.store(newest, Relaxed);
                self.forget(place(newest), block);
                return Some(block);
            }
        }
        self.next.store(self.oldest.load(Relaxed), Relaxed);
        None
    }

    /// Takes any that `take` can have.
    pub(crate) fn take_any(&self, take: impl Fn(BlockIndex) -> bool) -> Option<BlockIndex> {
        let found = self.iter().enumerate().find(|(_, block)| take(*block));
        found.map(|(place, block)| {
            self.forget(place, block);
            block
        })
    }

    /// A pageblock is not at this place any more. Else it would seem to be here when it is kept at another place.
    fn forget(&self, place: usize, block: BlockIndex) {
        self.blocks[place].compare_exchange(block as u32, NONE, Relaxed, Relaxed).ok();
    }

    /// Puts one on the ring. Returns what was there.
    #[inline]
    pub(crate) fn push(&self, block: BlockIndex) -> BlockIndex {
        let next = self.next.load(Relaxed);
        self.next.store(next.wrapping_add(1), Relaxed);
        self.replace(place(next), block)
    }

    /// Those of the ring, or so many as it has room for.
    #[inline]
    pub(crate) fn kept(&self) -> usize {
        (self.next.load(Relaxed).wrapping_sub(self.oldest.load(Relaxed)) as usize).min(SPARES)
    }

    /// The oldest of the ring, which are nowhere from then on, until so many are left: the newest are in caches.
    pub(crate) fn shed(&self, left: usize) -> impl Iterator<Item = BlockIndex> {
        let (next, kept) = (self.next.load(Relaxed), self.kept());
        self.oldest.store(next.wrapping_sub(left.min(kept) as u32), Relaxed);
        let ages = (left..kept).rev().map(move |age| next.wrapping_sub(1 + age as u32));
        ages.map(|age| {
            let block = self.blocks[place(age)].load(Relaxed) as usize;
            self.forget(place(age), block);
            block
        })
    }

    /// Puts a pageblock at a place, 0 for the one that was freed last. Returns the one that was there.
    ///
    /// In one order with the pageblocks' states: who finds his spare pageblock here leaves it, and who replaces it meanwhile finds
    /// that it is spare.
    #[inline]
    pub(crate) fn replace(&self, place: usize, block: BlockIndex) -> BlockIndex {
        self.blocks[place].swap(block as u32, SeqCst) as usize
    }
}

/// Where the ring has the pageblock that so many went before.
#[inline]
const fn place(number: u32) -> usize {
    1 + number as usize % SPARES
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::vec::Vec;

    use super::*;

    const ANY: fn(BlockIndex) -> bool = |_| true;

    #[test]
    fn the_newest_are_taken_and_the_oldest_are_shed() {
        let spares = Spares::new();
        for round in 0..5 * SPARES {
            let base = 10 * round;
            for block in base..base + 6 {
                spares.push(block);
            }
            assert_eq!(spares.kept(), 6);
            assert_eq!(spares.pop(ANY), Some(base + 5));
            assert_eq!(spares.pop(|block| block < base + 3), Some(base + 2), "what is gone is passed over");
            assert_eq!(spares.shed(1).collect::<Vec<_>>(), [base]);
            assert_eq!([0; 2].map(|_| spares.pop(ANY)), [Some(base + 1), None]);
            let passed = spares.take_any(|block| block / 10 == round).map(|block| block % 10);
            assert!(matches!(passed, Some(3 | 4)), "both were passed over: {passed:?}");
        }
    }

    #[test]
    fn what_was_taken_is_nowhere_when_it_comes_back() {
        let spares = Spares::new();
        spares.push(1);
        spares.push(2);
        assert_eq!([0; 2].map(|_| spares.pop(ANY)), [Some(2), Some(1)]);
        for block in [2, 1] {
            assert_eq!(spares.push(block), NONE as usize, "nothing is replaced");
        }
        assert_eq!(spares.iter().filter(|block| *block != NONE as usize).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn numbers_that_end_and_numbers_that_lie_do_no_harm() {
        for (oldest, next) in [(u32::MAX - 2, u32::MAX - 2), (5, 3), (0, u32::MAX)] {
            let spares = Spares::new();
            spares.oldest.store(oldest, Relaxed);
            spares.next.store(next, Relaxed);
            for block in 0..2 * SPARES {
                spares.push(block);
            }
            assert!(spares.kept() <= SPARES && spares.shed(3).count() <= SPARES);
            assert_eq!(spares.pop(ANY), Some(2 * SPARES - 1));
            assert_eq!(spares.iter().count(), 1 + SPARES);
        }
    }
}
