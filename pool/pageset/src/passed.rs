//! Blocks that arrays gave up last, as they came. Blocks that one thread frees and another allocates pass
//! here, without changes of the base's bits.

use crate::arrays::{Caps, Class, Entry};
use crate::heap::{self, HeapExhausted};

/// All classes pass here.
const CLASSES: usize = Class::COUNT;
/// The number of halves of an array that may wait here for each class. While blocks wait here, they cannot
/// form larger blocks.
const HALVES: usize = 2;
/// The number of halves for pageblocks, which form no larger blocks. `PAGEBLOCK_SHARE` limits them to a
/// fraction of the pool, because other classes do not look here.
const PAGEBLOCK_HALVES: usize = 40;
const PAGEBLOCK_SHARE: usize = 8;

/// For each class, some halves of an array. The next block to use is at the end. An entry keeps what is known
/// of its block's contents.
pub(crate) struct Passed([Vec<Entry>; CLASSES]);

impl Passed {
    /// Makes empty lists, with room for the blocks that a pool of this many pageblocks may pass on.
    pub(crate) fn new(caps: Caps, pageblocks: usize) -> Result<Self, HeapExhausted> {
        let most = |class: Class| {
            let half = caps.of(class) as usize / 2;
            match class {
                Class::Order9 => (half * PAGEBLOCK_HALVES).min(pageblocks / PAGEBLOCK_SHARE),
                _ => half * HALVES,
            }
        };
        let mut halves = <[Vec<Entry>; CLASSES]>::default();
        for (kept, class) in halves.iter_mut().zip(Class::ALL) {
            *kept = heap::with_room(most(class))?;
        }
        Ok(Self(halves))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|entries| entries.capacity() * size_of::<Entry>()).sum()
    }

    /// Frames of all blocks.
    pub(crate) fn frames(&self) -> u64 {
        Class::ALL.into_iter().map(|class| (self.0[class as usize].len() as u64) << class.shift()).sum()
    }

    /// Puts all of these blocks here, or none if there is no room.
    #[inline]
    pub(crate) fn put(&mut self, class: Class, entries: &[Entry]) -> bool {
        let Some(kept) = self.0.get_mut(class as usize) else { return false };
        let has_room = entries.len() <= kept.capacity() - kept.len();
        if has_room {
            kept.extend_from_slice(entries);
        }
        has_room
    }

    /// Takes up to `limit` blocks, the last put first.
    #[inline]
    pub(crate) fn take(&mut self, class: Class, limit: usize, take: impl FnOnce(&[Entry])) -> usize {
        let Some(kept) = self.0.get_mut(class as usize) else { return 0 };
        let left = kept.len().saturating_sub(limit);
        let taken = kept.len() - left;
        take(&kept[left..]);
        kept.truncate(left);
        taken
    }

    /// Whether a frame belongs to a block here. O(blocks).
    pub(crate) fn has(&self, frame: u32) -> bool {
        let has = |class: usize| {
            let frames = Class::ALL[class].frames();
            self.0[class].iter().any(|entry| (entry.frame()..entry.frame() + frames).contains(&frame))
        };
        (0..CLASSES).any(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_last_is_taken_first() {
        let mut passed = Passed::new(Caps([5, 2, 2, 2, 2, 2, 2, 2, 2, 2]), 8).unwrap();
        let [a, b, c] = [1, 2, 3].map(Entry::dirty);
        assert!(passed.put(Class::Order0, &[a, b]) && passed.put(Class::Order0, &[c]));
        assert!(!passed.put(Class::Order0, &[a, b]), "room for one");
        assert!(passed.has(3) && !passed.has(4));
        let mut taken = Vec::new();
        assert_eq!(passed.take(Class::Order0, 2, |entries| taken.extend_from_slice(entries)), 2);
        assert_eq!(taken, [b, c]);
        for rest in [&[a][..], &[]] {
            passed.take(Class::Order0, usize::MAX, |entries| assert_eq!(entries, rest));
        }
        assert!(passed.put(Class::Order3, &[Entry::dirty(8)]) && passed.has(15) && !passed.has(16));
        assert!(passed.put(Class::Order9, &[Entry::dirty(512)]) && passed.has(1023) && !passed.has(1024));
    }
}
