//! Which pageblocks are free as a whole: a bit each.

use core::ops::Range;

use pageset_core::Storage;

use crate::atomic::{AcqRel, AtomicUsize, Relaxed, SeqCst, constant};
use crate::stack::BlockIndex;

const BITS: usize = usize::BITS as usize;

/// Pageblocks that are free as a whole, one bit each, for all zones.
#[derive(Debug)]
pub(crate) struct WholeMap<'a>(pub(crate) Storage<'a, WholeWord>);

/// A word of the map of whole pageblocks.
#[derive(Debug)]
pub struct WholeWord(AtomicUsize);

impl Default for WholeWord {
    fn default() -> Self {
        Self::new()
    }
}

impl WholeWord {
    constant! {
        /// An entry of a table, to be filled when the allocator is built.
        #[must_use]
        pub fn new() -> Self {
            Self(AtomicUsize::new(0))
        }
    }
}

impl WholeMap<'_> {
    /// Words that so many pageblocks need.
    pub(crate) const fn words(blocks: usize) -> usize {
        blocks.div_ceil(BITS)
    }

    /// Takes `count` (1 or 2) pageblocks at a multiple of `count`, from `near` on upwards, then from the beginning of
    /// `blocks`.
    pub(crate) fn claim(
        &self,
        blocks: &Range<BlockIndex>,
        near: BlockIndex,
        count: usize,
    ) -> Option<BlockIndex> {
        let near = near.clamp(blocks.start, blocks.end);
        self.claim_in(near..blocks.end, count).or_else(|| {
            // The word that `near` lies in is looked at as a whole.
            self.claim_in(blocks.start..(near.next_multiple_of(BITS)).min(blocks.end), count)
        })
    }

    fn claim_in(&self, blocks: Range<BlockIndex>, count: usize) -> Option<BlockIndex> {
        let run = |free: usize| lowest(free, count).map_or(0, |bit| ((1 << count) - 1) << bit);
        let (first, taken) = self.claim_bits(blocks, run)?;
        Some(first + taken.trailing_zeros() as usize)
    }

    /// Takes what `choose` chooses of the free ones of the first word of which it chooses any.
    fn claim_bits(
        &self,
        blocks: Range<BlockIndex>,
        choose: impl Fn(usize) -> usize,
    ) -> Option<(BlockIndex, usize)> {
        if blocks.is_empty() {
            return None;
        }
        for word in blocks.start / BITS..Self::words(blocks.end) {
            let first = word * BITS;
            let mut eligible = usize::MAX;
            if blocks.start > first {
                eligible &= usize::MAX << (blocks.start - first);
            }
            if blocks.end < first + BITS {
                eligible &= !(usize::MAX << (blocks.end - first));
            }
            let map = &self.0[word].0;
            let mut free = map.load(Relaxed);
            loop {
                let taken = choose(free & eligible);
                if taken == 0 {
                    break;
                }
                match map.compare_exchange_weak(free, free & !taken, AcqRel, Relaxed) {
                    Ok(_) => return Some((first, taken)),
                    Err(now) => free = now,
                }
            }
        }
        None
    }

    /// Takes up to `count` pageblocks of one word, the lowest of the first word that has any, from `near` on upwards, then from
    /// the beginning of `blocks`. Returns the first pageblock of the word, and which ones as bits.
    pub(crate) fn claim_some(
        &self,
        blocks: &Range<BlockIndex>,
        near: BlockIndex,
        count: usize,
    ) -> Option<(BlockIndex, usize)> {
        let near = near.clamp(blocks.start, blocks.end);
        let lowest_of = |free: usize| lowest_bits(free, count);
        self.claim_bits(near..blocks.end, lowest_of)
            .or_else(|| self.claim_bits(blocks.start..near.next_multiple_of(BITS).min(blocks.end), lowest_of))
    }

    /// Takes these pageblocks, if all of them are there. In one order with `put`, and with what is known of each pageblock.
    pub(crate) fn claim_at(&self, block: BlockIndex, count: usize) -> bool {
        let taken = ((1 << count) - 1) << (block % BITS);
        let change = |free: usize| (free & taken == taken).then_some(free & !taken);
        self.0[block / BITS].0.fetch_update(SeqCst, SeqCst, change).is_ok()
    }

    pub(crate) fn put(&self, block: BlockIndex, count: usize) {
        self.put_bits(block / BITS, ((1 << count) - 1) << (block % BITS));
    }

    /// Puts pageblocks of one word, as bits.
    pub(crate) fn put_bits(&self, word: usize, blocks: usize) {
        self.0[word].0.fetch_or(blocks, SeqCst);
    }

    /// The word of a pageblock, and its bit there.
    pub(crate) const fn place(block: BlockIndex) -> (usize, usize) {
        (block / BITS, 1 << (block % BITS))
    }

    /// The lowest pageblock of these of a word.
    pub(crate) const fn block(word: usize, bits: usize) -> BlockIndex {
        word * BITS + bits.trailing_zeros() as usize
    }

    pub(crate) fn has(&self, block: BlockIndex) -> bool {
        self.0[block / BITS].0.load(Relaxed) >> (block % BITS) & 1 == 1
    }
}

/// The lowest multiple of `count` (1 or 2) from which on so many bits are set.
#[inline]
fn lowest(free: usize, count: usize) -> Option<usize> {
    let free = if count == 1 { free } else { free & (free >> 1) & (usize::MAX / 3) };
    (free != 0).then(|| free.trailing_zeros() as usize)
}

/// The lowest `count` of the bits.
#[inline]
const fn lowest_bits(bits: usize, count: usize) -> usize {
    let (mut rest, mut left) = (bits, count);
    while rest != 0 && left > 0 {
        rest &= rest - 1;
        left -= 1;
    }
    bits & !rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(blocks: &[BlockIndex]) -> WholeMap<'static> {
        let map = WholeMap(Storage::owned(WholeMap::words(300), WholeWord::new).unwrap());
        blocks.iter().for_each(|block| map.put(*block, 1));
        map
    }

    #[test]
    fn from_here_on_then_from_the_beginning() {
        let map = map(&[1, 70, 71, 130, 299]);
        assert_eq!(map.claim(&(0..300), 71, 1), Some(71));
        assert_eq!(map.claim(&(0..300), 71, 1), Some(130));
        assert_eq!(map.claim(&(0..299), 131, 1), Some(1));
        assert_eq!(map.claim(&(0..299), 131, 1), Some(70));
        assert_eq!(map.claim(&(0..299), 131, 1), None, "299 is another zone's");
        assert!(map.claim_at(299, 1) && !map.claim_at(299, 1));
    }

    #[test]
    fn some_come_from_one_word() {
        let map = map(&[1, 3, 70, 71, 130]);
        assert_eq!(map.claim_some(&(0..300), 0, 3), Some((0, 0b1010)));
        assert_eq!(map.claim_some(&(0..300), 0, 1), Some((64, 1 << 6)));
        assert_eq!(map.claim_some(&(0..300), 129, 8), Some((128, 1 << 2)));
        assert_eq!(map.claim_some(&(0..300), 129, 8), Some((64, 1 << 7)));
        assert_eq!(map.claim_some(&(0..300), 0, 8), None);
    }

    #[test]
    fn pairs_are_aligned() {
        let map = map(&[1, 2, 5, 6, 7, 128, 129]);
        assert_eq!(map.claim(&(0..300), 0, 2), Some(6));
        assert_eq!(map.claim(&(0..300), 0, 2), Some(128));
        assert_eq!(map.claim(&(0..300), 0, 2), None);
        map.put(6, 2);
        assert!(map.has(6) && map.has(7) && !map.has(128));
    }
}
