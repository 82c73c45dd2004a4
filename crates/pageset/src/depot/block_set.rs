//! A set of pageblocks that gives its lowest member.

use crate::heap::{self, HeapExhausted};

/// Bits of pageblocks, and above them a bit for each word that is not zero.
///
/// # Invariants
/// A bit of `summary` is set if and only if its word is not zero; no word of `summary` before `first` has bits.
#[derive(Default)]
pub(super) struct BlockSet {
    words: Box<[u64]>,
    summary: Box<[u64]>,
    first: usize,
}

impl BlockSet {
    /// The empty set of pageblocks below `blocks`.
    pub(super) fn new(blocks: usize) -> Result<Self, HeapExhausted> {
        let words = blocks.div_ceil(64);
        Ok(Self { words: heap::zeroed(words)?, summary: heap::zeroed(words.div_ceil(64))?, first: 0 })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.summary)
    }

    pub(super) fn insert(&mut self, block: u32) {
        let word = block as usize / 64;
        self.words[word] |= 1 << (block % 64);
        self.summary[word / 64] |= 1 << (word % 64);
        self.first = self.first.min(word / 64);
    }

    pub(super) fn remove(&mut self, block: u32) {
        let word = block as usize / 64;
        self.words[word] &= !(1 << (block % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
    }

    /// The lowest member. O(1) mostly; a pool of 4 TiB has 512 words of summary to search.
    pub(super) fn lowest(&mut self) -> Option<u32> {
        while let Some(summary) = self.summary.get(self.first) {
            if *summary != 0 {
                let word = self.first * 64 + summary.trailing_zeros() as usize;
                return Some(word as u32 * 64 + self.words[word].trailing_zeros());
            }
            self.first += 1;
        }
        self.first = 0;
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_lowest_member_is_that_of_a_sorted_set() {
        let blocks = 10_000;
        let (mut set, mut model) = (BlockSet::new(blocks).unwrap(), BTreeSet::new());
        let mut random = 1_u64;
        for _ in 0..crate::sys::TEST_ROUNDS {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let block = ((random >> 33) % blocks as u64) as u32;
            if random >> 60 < 7 {
                set.insert(block);
                model.insert(block);
            } else if let Some(lowest) = model.pop_first() {
                set.remove(lowest);
            }
            assert_eq!(set.lowest(), model.first().copied());
        }
    }
}
