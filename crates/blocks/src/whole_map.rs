//! Which pageblocks are free as a whole: a bit each.

use core::ops::Range;

use pageset_core::Storage;

use crate::atomic::{AcqRel, AtomicUsize, Relaxed, Release};
use crate::stack::BlockIndex;

const BITS: usize = usize::BITS as usize;

/// Pageblocks that are free as a whole, one bit each, for all zones.
#[derive(Debug)]
pub(crate) struct WholeMap<'a>(pub(crate) Storage<'a, WholeWord>);

/// A word of the map of whole pageblocks.
#[derive(Debug)]
pub struct WholeWord(AtomicUsize);

impl WholeWord {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
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
            while let Some(bit) = lowest(free & eligible, count) {
                let taken = ((1 << count) - 1) << bit;
                match map.compare_exchange_weak(free, free & !taken, AcqRel, Relaxed) {
                    Ok(_) => return Some(first + bit),
                    Err(now) => free = now,
                }
            }
        }
        None
    }

    /// Takes these pageblocks, if all of them are there.
    pub(crate) fn claim_at(&self, block: BlockIndex, count: usize) -> bool {
        let taken = ((1 << count) - 1) << (block % BITS);
        let change = |free: usize| (free & taken == taken).then_some(free & !taken);
        self.0[block / BITS].0.fetch_update(AcqRel, Relaxed, change).is_ok()
    }

    pub(crate) fn put(&self, block: BlockIndex, count: usize) {
        self.0[block / BITS].0.fetch_or(((1 << count) - 1) << (block % BITS), Release);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn map(blocks: &[BlockIndex]) -> WholeMap<'static> {
        let map = WholeMap(Storage::owned(WholeMap::words(300), WholeWord::new));
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
    fn pairs_are_aligned() {
        let map = map(&[1, 2, 5, 6, 7, 128, 129]);
        assert_eq!(map.claim(&(0..300), 0, 2), Some(6));
        assert_eq!(map.claim(&(0..300), 0, 2), Some(128));
        assert_eq!(map.claim(&(0..300), 0, 2), None);
        map.put(6, 2);
        assert!(map.has(6) && map.has(7) && !map.has(128));
    }
}
