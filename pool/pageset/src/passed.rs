//! Keeps blocks that flushes took out of arrays, until a refill takes them or the pool frees them in the
//! allocator. If one thread frees blocks and another thread allocates, the blocks pass through the lists of
//! `Passed`, and the allocator has no work.

use crate::arrays::{Caps, Class, Entry};
use crate::heap::{self, HeapExhausted};
use crate::sys::checkers;

/// The number of lists: blocks of all classes can be passed on.
const CLASSES: usize = Class::COUNT;
/// A flush takes half of the blocks out of an array. Each list except that of pageblocks has room for this
/// many flushes. `HALVES` is small, because waiting blocks cannot merge into larger blocks.
const HALVES: usize = 2;
/// The number of flushes that the list of pageblocks has room for. Pageblocks need not merge into larger
/// blocks. The list of pageblocks also has room for at most 1/`PAGEBLOCK_SHARE` of the pool, because requests
/// of other classes cannot use waiting pageblocks.
const PAGEBLOCK_HALVES: usize = 40;
const PAGEBLOCK_SHARE: usize = 8;

/// A list of blocks for each class. A refill takes the last entries first. Each entry says whether its block
/// is known to be zero.
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

    /// The number of frames of all blocks in the lists.
    pub(crate) fn frames(&self) -> u64 {
        Class::ALL.into_iter().map(|class| (self.0[class as usize].len() as u64) << class.shift()).sum()
    }

    /// Adds these blocks to their list. Adds no block and returns `false` if the list has no room for all
    /// these blocks.
    #[inline]
    pub(crate) fn put(&mut self, class: Class, entries: &[Entry]) -> bool {
        let Some(kept) = self.0.get_mut(class as usize) else { return false };
        let has_room = entries.len() <= kept.capacity() - kept.len();
        if has_room {
            checkers::note_locked(kept);
            kept.extend_from_slice(entries);
            checkers::note_unlocked(kept);
        }
        has_room
    }

    /// Passes the blocks that were put last, at most `limit`, to `take` as one slice. Returns the number of
    /// blocks that `take` got.
    #[inline]
    pub(crate) fn take(&mut self, class: Class, limit: usize, take: impl FnOnce(&[Entry])) -> usize {
        let Some(kept) = self.0.get_mut(class as usize) else { return 0 };
        let left = kept.len().saturating_sub(limit);
        let taken = kept.len() - left;
        checkers::note_locked(kept);
        take(&kept[left..]);
        checkers::note_unlocked(kept);
        kept.truncate(left);
        taken
    }

    /// Whether one of the lists has a block with this frame. O(blocks).
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
