//! Sets of pageblocks. A search for the next member reads a few words, however many pageblocks there are.
//!
//! A set is a tree of bits. The lowest level has a bit for each pageblock. Each higher level has a bit for
//! each word of the level below that is not empty. Race: one CPU empties a word and clears the bit above,
//! while another CPU adds a member to the word. The first CPU loses: it reads the word again after it has
//! cleared the bit, and sets the bit again if the word has a member. So a search may find an empty word, or
//! miss a member for a moment, but no member stays hidden. If the first CPU stops between the two steps, the
//! members below one bit stay hidden until that CPU goes on, or until a CPU adds another member below that
//! bit.

use core::marker::PhantomData;
use core::ops::Range;

use pageset_core::Storage;

use crate::access::{Access, Shared, clear_bits, set_bits, update};
use crate::atomic::{AtomicUsize, SeqCst, constant};
use crate::ids::{BlockId, places};
use crate::row::{BITS, lowest};

/// The even bits of a word. A pair is a pageblock of even number and its buddy, so each even bit belongs to
/// the first pageblock of a pair.
const FIRSTS: usize = usize::MAX / 3;
/// The most levels of a set. `MAX_BLOCKS` pageblocks need 5 levels with words of 64 bits, and 6 with words of
/// 32.
const LEVELS_MAX: usize = 8;

/// A word of the index. An index of zeros has empty sets.
#[derive(Debug)]
#[cfg_attr(all(feature = "alloc", not(any(loom, shuttle))), derive(zerocopy::FromZeros))]
pub(crate) struct IndexWord(AtomicUsize);

impl Default for IndexWord {
    fn default() -> Self {
        Self::new()
    }
}

impl IndexWord {
    constant! {
        /// Makes an empty entry of a table. The constructor of the allocator fills the entry.
        #[must_use]
        pub(crate) fn new() -> Self {
            Self(AtomicUsize::new(0))
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl Index<'_> {
    /// Overwrites a word with any value. `at` counts the words of all sets.
    pub(crate) fn damage(&self, at: usize, word: usize) {
        self.words[at % self.words.len()].0.store(word, SeqCst);
    }
}

/// Several sets. Each set has a bit for every pageblock of the allocator.
#[derive(Debug)]
pub(crate) struct Index<'a> {
    words: Storage<'a, IndexWord>,
    /// For each level, the place of its first word in a set.
    starts: [u32; LEVELS_MAX],
    levels: usize,
    /// The number of words of a set.
    set_words: usize,
}

/// One set of the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set<'i, A = Shared> {
    index: &'i Index<'i>,
    words: &'i [IndexWord],
    access: PhantomData<A>,
}

/// Pageblocks whose bits lie in one word of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Several {
    word: usize,
    bits: usize,
}

impl Several {
    pub(crate) const NONE: Self = Self { word: 0, bits: 0 };

    /// One pageblock.
    pub(crate) const fn of(block: BlockId) -> Self {
        Self { word: block.0 / BITS, bits: 1 << (block.0 % BITS) }
    }

    /// Pageblocks whose bits lie in one half of a word of a set. `half` is the number of a half-word of the
    /// set: 0 is the lower half of the set's first word.
    pub(crate) const fn of_half(half: usize, bits: usize) -> Self {
        Self { word: half / 2, bits: bits << (half % 2 * (BITS / 2)) }
    }

    /// Adds a pageblock. Returns `false` if the bit of `block` lies in another word.
    pub(crate) const fn add(&mut self, block: BlockId) -> bool {
        let one = Self::of(block);
        let belongs = self.bits == 0 || self.word == one.word;
        if belongs {
            *self = Self { word: one.word, bits: self.bits | one.bits };
        }
        belongs
    }

    pub(crate) const fn len(self) -> usize {
        self.bits.count_ones() as usize
    }

    pub(crate) fn first(mut self) -> Option<BlockId> {
        self.next()
    }
}

/// The pageblocks, lowest first.
impl Iterator for Several {
    type Item = BlockId;

    fn next(&mut self) -> Option<BlockId> {
        let at = self.bits.trailing_zeros() as usize;
        self.bits &= self.bits.checked_sub(1)?;
        Some(BlockId(self.word * BITS + at))
    }
}

impl<'a> Index<'a> {
    /// The number of words that a set of this many pageblocks needs.
    pub(crate) const fn words(blocks: usize) -> usize {
        let (mut words, mut of_level) = (0, blocks);
        loop {
            of_level = of_level.div_ceil(BITS);
            words += of_level;
            if of_level <= 1 {
                return words;
            }
        }
    }

    pub(crate) fn new(words: Storage<'a, IndexWord>, blocks: usize) -> Self {
        let mut starts = [0; LEVELS_MAX];
        let (mut levels, mut start, mut of_level) = (0, 0, blocks);
        loop {
            of_level = of_level.div_ceil(BITS);
            starts[levels] = start as u32;
            levels += 1;
            start += of_level;
            if of_level <= 1 {
                return Self { words, starts, levels, set_words: start };
            }
        }
    }

    /// The set with this number.
    #[inline]
    pub(crate) fn set<A: Access>(&self, number: usize) -> Set<'_, A> {
        let first = number * self.set_words;
        Set { index: self, words: &self.words[first..first + self.set_words], access: PhantomData }
    }

    /// A set that stays empty.
    pub(crate) const fn none<A: Access>(&self) -> Set<'_, A> {
        Set { index: self, words: &[], access: PhantomData }
    }
}

impl<A: Access> Set<'_, A> {
    #[inline]
    fn word(&self, level: usize, word: usize) -> Option<&AtomicUsize> {
        Some(&self.words.get(self.index.starts[level] as usize + word)?.0)
    }

    fn words_of(&self, level: usize) -> usize {
        let end = if level + 1 < self.index.levels {
            self.index.starts[level + 1] as usize
        } else {
            self.index.set_words
        };
        end - self.index.starts[level] as usize
    }

    #[inline]
    pub(crate) fn has(&self, block: BlockId) -> bool {
        self.word(0, block.0 / BITS).is_some_and(|word| word.load(SeqCst) >> (block.0 % BITS) & 1 == 1)
    }

    /// Adds a pageblock.
    pub(crate) fn add(&self, block: BlockId) {
        self.add_above(0, block.0);
    }

    fn add_above(&self, level: usize, at: usize) {
        let mut at = at;
        for level in level..self.index.levels {
            let (word, bit) = (at / BITS, 1 << (at % BITS));
            let Some(cell) = self.word(level, word) else { return };
            // Most bits are set already, and a read keeps the word in all CPUs' caches. A set bit does not
            // end the walk. Race: the CPU that set this bit may have stopped before it set the bit above. If
            // the walk ended here, searches would not find the members of the word.
            if cell.load(SeqCst) & bit == 0 {
                set_bits::<A>(cell, bit);
            }
            at = word;
        }
    }

    /// Adds the pageblocks of a range, or only the first pageblock of each pair in the range. Only the
    /// constructor calls `fill`, before other threads have the allocator.
    pub(crate) fn fill(&self, blocks: &Range<BlockId>, pairs: bool) {
        let mut range = places(blocks);
        if pairs {
            range = range.start.next_multiple_of(2)..range.end & !1;
        }
        for level in 0..self.index.levels {
            if range.is_empty() {
                return;
            }
            for word in range.start / BITS..range.end.div_ceil(BITS) {
                let first = range.start.saturating_sub(word * BITS);
                let end = (range.end - word * BITS).min(BITS);
                let of_pairs = if pairs && level == 0 { FIRSTS } else { usize::MAX };
                let bits = usize::MAX >> (BITS - (end - first)) << first & of_pairs;
                if let Some(cell) = self.word(level, word) {
                    cell.store(cell.load(SeqCst) | bits, SeqCst);
                }
            }
            range = range.start / BITS..range.end.div_ceil(BITS);
        }
    }

    /// Adds pageblocks whose bits lie in one word. One atomic operation sets their bits. Usually the bits in
    /// the levels above are set already, and stay as they are.
    pub(crate) fn add_several(&self, blocks: Several) {
        if blocks.bits == 0 {
            return;
        }
        let Some(cell) = self.word(0, blocks.word) else { return };
        set_bits::<A>(cell, blocks.bits);
        self.add_above(1, blocks.word);
    }

    /// Removes up to `limit` members from `first` on by one exchange. The removed members lie before `end`,
    /// and their bits in the half-word that has the bit of `first`. If another CPU removed one of these
    /// members first, removes and returns none.
    pub(crate) fn take_from(&self, first: BlockId, end: BlockId, limit: usize) -> Several {
        let (word, from) = (first.0 / BITS, first.0 % BITS);
        let Some(cell) = self.word(0, word) else { return Several::NONE };
        let end = (end.0 - word * BITS).min((from | (BITS / 2 - 1)) + 1);
        let within = usize::MAX << from & usize::MAX >> (BITS - end);
        let there = cell.load(SeqCst) & within;
        let bits = lowest(there, limit);
        if bits != 0 && self.remove_all(word, bits) { Several { word, bits } } else { Several::NONE }
    }

    /// Finds the pairs with both pageblocks in the set and at least one in `blocks`. A pair is a pageblock of
    /// even number and its buddy. Returns the first pageblock of each pair.
    pub(crate) fn pairs_around(&self, blocks: Several) -> Several {
        let there = self.word(0, blocks.word).map_or(0, |word| word.load(SeqCst));
        let touched = blocks.bits | blocks.bits >> 1;
        Several { word: blocks.word, bits: there & there >> 1 & touched & FIRSTS }
    }

    /// Removes a pageblock. Returns `false` if the pageblock is no member.
    pub(crate) fn remove(&self, block: BlockId) -> bool {
        self.remove_all(block.0 / BITS, 1 << (block.0 % BITS))
    }

    /// Removes the pageblocks of `bits` in a word, if all of them are members.
    fn remove_all(&self, word: usize, bits: usize) -> bool {
        let Some(cell) = self.word(0, word) else { return false };
        let remove = |now: usize| (now & bits == bits).then_some(now & !bits);
        match update::<A, _>(cell, SeqCst, remove) {
            Ok(before) if before == bits => self.note_empty(word),
            Ok(_) => {}
            Err(_) => return false,
        }
        true
    }

    /// A word of the lowest level became empty: clears its bit in the level above. If the word of the level
    /// above is empty now, too, goes on with the next level.
    fn note_empty(&self, word: usize) {
        let mut at = word;
        for level in 1..self.index.levels {
            let (above, bit) = (at / BITS, 1 << (at % BITS));
            let (Some(below), Some(cell)) = (self.word(level - 1, at), self.word(level, above)) else {
                return;
            };
            let before = clear_bits::<A>(cell, bit);
            if below.load(SeqCst) != 0 {
                self.add_above(level, at);
                return;
            }
            if before != bit {
                return;
            }
            at = above;
        }
    }

    /// Whether the highest word has no bit. A request that finds no memory searches some 30 sets. Most of
    /// these sets are empty.
    ///
    /// Race: another CPU adds the first member, and has not set the bit in the highest word yet. Or another
    /// CPU has emptied a word and clears the bit above while a third CPU adds a member to the word; the
    /// second CPU then sets the bit again. A search in between misses the member, as if it had come before
    /// the addition.
    ///
    /// [`find`](Self::find) calls this function once, and not once for each part of its range. (Measured,
    /// example `limits`: a request that finds no memory takes 400 ns, and 533 ns if each part calls this
    /// function.)
    #[inline]
    fn is_empty(&self) -> bool {
        self.words.last().is_none_or(|word| word.0.load(SeqCst) == 0)
    }

    /// The first member from `from` on.
    fn next(&self, from: BlockId) -> Option<BlockId> {
        let (mut level, mut at) = (0, from.0);
        loop {
            let word = at / BITS;
            if word >= self.words_of(level) {
                return None;
            }
            let bits = self.word(level, word)?.load(SeqCst) & usize::MAX << (at % BITS);
            if bits != 0 {
                let found = word * BITS + bits.trailing_zeros() as usize;
                if level == 0 {
                    return Some(BlockId(found));
                }
                (level, at) = (level - 1, found * BITS);
            } else if level + 1 == self.index.levels {
                return None;
            } else {
                (level, at) = (level + 1, word + 1);
            }
        }
    }

    /// Returns the first member of this range from `near` on. If there is none, returns the first member of
    /// the range.
    #[inline]
    pub(crate) fn find(&self, range: &Range<BlockId>, near: BlockId) -> Option<BlockId> {
        if self.is_empty() { None } else { self.find_near(range, near) }
    }

    fn find_near(&self, range: &Range<BlockId>, near: BlockId) -> Option<BlockId> {
        let near = near.clamp(range.start, range.end);
        let within = |from: BlockId, end: BlockId| self.next(from).filter(|block| *block < end);
        within(near, range.end).or_else(|| within(range.start, near))
    }

    /// The first member of this range from `from` on.
    #[inline]
    pub(crate) fn find_from(&self, range: &Range<BlockId>, from: BlockId) -> Option<BlockId> {
        if self.is_empty() {
            return None;
        }
        self.next(from).filter(|block| *block < range.end)
    }

    /// The first pageblock of this range that is no member. O(range / 64).
    pub(crate) fn first_missing(&self, range: &Range<BlockId>) -> Option<BlockId> {
        Self::words_around(range).find_map(|word| {
            let missing = Self::mask(word, range) & !self.part_of(word, range);
            (missing != 0).then(|| BlockId(word * BITS + missing.trailing_zeros() as usize))
        })
    }

    /// The number of members in this range. O(range / 64).
    pub(crate) fn count(&self, range: &Range<BlockId>) -> usize {
        Self::words_around(range).map(|word| self.part_of(word, range).count_ones() as usize).sum()
    }

    fn words_around(range: &Range<BlockId>) -> Range<usize> {
        range.start.0 / BITS..range.end.0.div_ceil(BITS)
    }

    fn part_of(&self, word: usize, range: &Range<BlockId>) -> usize {
        self.word(0, word).map_or(0, |cell| cell.load(SeqCst)) & Self::mask(word, range)
    }

    /// The bits of a word that lie in this range. The range must have a bit of the word.
    fn mask(word: usize, range: &Range<BlockId>) -> usize {
        let from = range.start.0.saturating_sub(word * BITS);
        let end = (range.end.0 - word * BITS).min(BITS);
        usize::MAX << from & usize::MAX >> (BITS - end)
    }

    /// Removes a pair. Returns `false` if a pageblock of the pair is no member.
    pub(crate) fn remove_pair(&self, first: BlockId) -> bool {
        self.remove_all(first.0 / BITS, 0b11 << (first.0 % BITS))
    }

    /// Whether both pageblocks of a pair are members.
    pub(crate) fn has_pair(&self, first: BlockId) -> bool {
        self.word(0, first.0 / BITS).is_some_and(|word| word.load(SeqCst) >> (first.0 % BITS) & 0b11 == 0b11)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ids::each;

    #[test]
    fn a_set_is_what_a_list_of_its_members_says() {
        for blocks in [1, 63, 64, 65, 5000, 300_000] {
            let index = Index::new(Storage::owned(2 * Index::words(blocks), IndexWord::new).unwrap(), blocks);
            let set = index.set::<Shared>(1);
            let mut members = BTreeSet::new();
            let mut seed = 5_u64;
            let mut random = move |below: usize| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) as usize % below
            };
            for _ in 0..if cfg!(miri) { 100 } else { 5000 } {
                let block = BlockId(random(blocks));
                if random(2) == 0 {
                    set.add(block);
                    members.insert(block);
                } else {
                    assert_eq!(set.remove(block), members.remove(&block));
                }
                let (near, start) = (BlockId(random(blocks)), random(blocks));
                let range = BlockId(start)..BlockId(start + random(blocks - start + 1));
                let from = near.clamp(range.start, range.end);
                let expected =
                    members.range(from..range.end).next().or_else(|| members.range(range.clone()).next());
                assert_eq!(set.find(&range, near), expected.copied(), "{near:?} in {range:?}");
                let there = members.range(range.clone()).count();
                assert_eq!(set.count(&range), there);
                let missing = each(&range).find(|block| !members.contains(block));
                assert_eq!(set.first_missing(&range), missing, "{range:?}");
                assert_eq!(set.has(block), members.contains(&block));
            }
            assert_eq!(
                index.set::<Shared>(0).find(&(BlockId(0)..BlockId(blocks)), BlockId(0)),
                None,
                "the other set is empty"
            );
        }
    }

    /// Before the fix, an addition ended at the first bit that was set already. So a CPU that had stopped
    /// between two levels hid the members that other CPUs added to the same word.
    #[test]
    fn a_cpu_that_stopped_in_an_addition_hides_nothing_that_others_add() {
        for blocks in [3 * BITS, 5000, 300_000] {
            let index = Index::new(Storage::owned(Index::words(blocks), IndexWord::new).unwrap(), blocks);
            let (set, all) = (index.set::<Shared>(0), BlockId(0)..BlockId(blocks));
            for stopped_at in 0..index.levels - 1 {
                // The CPU has set its bits up to this level, and stops. The search begins in another word of
                // each level but the highest.
                let word = (blocks - 1) / BITS;
                let (stopped, other) = (BlockId(word * BITS), BlockId(word * BITS + 2));
                let mut at = stopped.0;
                for level in 0..=stopped_at {
                    set.word(level, at / BITS).unwrap().fetch_or(1 << (at % BITS), SeqCst);
                    at /= BITS;
                }
                assert_eq!(set.find(&all, all.start), None, "hidden from a search that begins elsewhere");
                set.add(other);
                assert_eq!(set.find(&all, all.start), Some(stopped), "{blocks} {stopped_at}");
                assert!(set.remove(other) && set.remove(stopped));
                assert_eq!(set.find(&all, all.start), None);
                set.word(0, word).unwrap().fetch_or(1, SeqCst);
                set.add_several(Several { word, bits: 0b100 });
                assert_eq!(set.find(&all, all.start), Some(stopped));
                assert!(set.remove(stopped) && set.remove(other));
            }
        }
    }

    #[test]
    fn pairs_go_together_or_not_at_all() {
        let index = Index::new(Storage::owned(Index::words(300), IndexWord::new).unwrap(), 300);
        let set = index.set::<Shared>(0);
        let [first, second, other] = [6, 7, 8].map(BlockId);
        [first, second, other].into_iter().for_each(|block| set.add(block));
        assert!(set.has_pair(first) && !set.has_pair(other));
        assert!(!set.remove_pair(other) && set.remove_pair(first) && !set.remove_pair(first));
        assert_eq!(set.find(&(BlockId(0)..BlockId(300)), BlockId(0)), Some(other));
    }
}
