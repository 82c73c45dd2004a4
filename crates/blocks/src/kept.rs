//! Blocks that a CPU freed to other CPUs' pageblocks and has not given back yet, or took ahead of a shared one: lists by type and
//! order that share their room, for whoever gets hold of them.

use pageset_core::{COSTLY_ORDER, Order};

use crate::atomic::{Acquire, AtomicU32, Relaxed, Release, array, constant};
use crate::collected::Collected;
use crate::cpu_lists::{TYPES, Wanted};
use crate::free_bits::FRAMES;
use crate::stack::BlockIndex;

/// Orders that are kept.
const KEPT_ORDERS: usize = COSTLY_ORDER + 1;
/// Frames that a CPU keeps of a zone at most. Decision 0025 in the sources compares sizes. Model checkers see each block, so there
/// they are few.
pub(crate) const FRAMES_MAX: usize = if cfg!(loom) {
    2
} else if cfg!(shuttle) {
    16
} else {
    256
};
/// No entry.
const NONE: u32 = u32::MAX;

/// Blocks of one zone that a CPU freed to pageblocks of others, by index of their first frame. They are in use as far as their
/// pageblocks know.
///
/// Whoever finds it busy goes on without it, so that nobody waits: not for a CPU that was interrupted in here, and not for one
/// that stopped.
#[derive(Debug)]
pub(crate) struct Kept {
    busy: AtomicU32,
    frames: AtomicU32,
    /// Entries from this one on were never used.
    fresh: AtomicU32,
    /// The first of those that nobody uses any more; `older` leads to the next.
    unused: AtomicU32,
    lists: [[List; KEPT_ORDERS]; TYPES],
    /// Besides, those of one pageblock.
    collected: Collected,
    entries: [Entry; FRAMES_MAX],
}

/// Blocks of one type and order.
#[derive(Debug)]
struct List {
    blocks: AtomicU32,
    newest: AtomicU32,
}

#[derive(Debug)]
struct Entry {
    frame: AtomicU32,
    /// The block of the same list that came before this one.
    older: AtomicU32,
}

impl Kept {
    constant! {
        pub(crate) fn new() -> Self {
            Self {
                busy: AtomicU32::new(0),
                frames: AtomicU32::new(0),
                fresh: AtomicU32::new(0),
                unused: AtomicU32::new(NONE),
                lists: array!(array!(List { blocks: AtomicU32::new(0), newest: AtomicU32::new(NONE) })),
                collected: Collected::new(),
                entries: array!(Entry { frame: AtomicU32::new(0), older: AtomicU32::new(NONE) }),
            }
        }
    }

    /// Whether blocks of this order are kept.
    pub(crate) fn keeps(order: Order) -> bool {
        order.index() < KEPT_ORDERS
    }

    /// Frames of all blocks.
    #[inline]
    pub(crate) fn frames(&self) -> usize {
        self.listed() + self.collected.frames()
    }

    /// Frames of the blocks in lists.
    fn listed(&self) -> usize {
        self.frames.load(Relaxed) as usize
    }

    /// Whether there is a block of this type and order.
    #[inline]
    pub(crate) fn has(&self, wanted: Wanted) -> bool {
        let is_collected = || wanted.order == Order::ZERO && self.collected.has(wanted.migratetype);
        Self::keeps(wanted.order) && (self.list(wanted).blocks.load(Relaxed) > 0 || is_collected())
    }

    /// Calls `work` if nobody else is here.
    #[inline]
    pub(crate) fn try_with<R>(&self, work: impl FnOnce(Held<'_>) -> R) -> Option<R> {
        if self.busy.swap(1, Acquire) != 0 {
            return None;
        }
        let result = work(Held(self));
        self.busy.store(0, Release);
        Some(result)
    }

    /// The first frames of all blocks. Exact only while nobody else is here.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        Self::all().flat_map(|wanted| self.blocks_of(wanted)).chain(self.collected.iter())
    }

    /// The first frames of the blocks of a list.
    fn blocks_of(&self, wanted: Wanted) -> impl Iterator<Item = u32> {
        let list = self.list(wanted);
        // No more than there are: another CPU may change them meanwhile.
        let entries = self.chain(&list.newest).take(list.blocks.load(Relaxed) as usize);
        entries.filter_map(|entry| Some(self.entries.get(entry as usize)?.frame.load(Relaxed)))
    }

    /// The first of these frames that a block here has. Exact only while nobody else is here.
    pub(crate) fn first_in(&self, frames: core::ops::Range<usize>) -> Option<usize> {
        let of_block = |first: u32, order: Order| {
            let (first, end) = (first as usize, first as usize + order.frames() as usize);
            (first < frames.end && frames.start < end).then(|| first.max(frames.start))
        };
        let listed =
            Self::all().flat_map(|wanted| self.blocks_of(wanted).map(move |first| (first, wanted.order)));
        let collected = self.collected.iter().map(|frame| (frame, Order::ZERO));
        listed.chain(collected).filter_map(|(first, order)| of_block(first, order)).min()
    }

    /// Whether somebody is here.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Relaxed) != 0
    }

    /// Whether its numbers agree with each other: each entry that was ever used is in one list, or unused. Exact only while nobody
    /// else is here.
    pub(crate) fn is_sound(&self) -> bool {
        let mut seen = [false; FRAMES_MAX];
        // One that was seen before is in another list too, or in a circle.
        let mut see =
            |entry: u32| seen.get_mut(entry as usize).is_some_and(|seen| !core::mem::replace(seen, true));
        let mut used = 0;
        let mut frames = 0;
        for wanted in Self::all() {
            let list = self.list(wanted);
            let blocks = list.blocks.load(Relaxed) as usize;
            if self.chain(&list.newest).count() != blocks || !self.chain(&list.newest).all(&mut see) {
                return false;
            }
            used += blocks;
            frames += blocks << wanted.order.get();
        }
        used += self.chain(&self.unused).count();
        self.collected.is_sound()
            && self.chain(&self.unused).all(see)
            && frames == self.listed()
            && used == self.fresh.load(Relaxed) as usize
    }

    /// Entries from this one on, or one more than there are if they form a circle.
    fn chain(&self, first: &AtomicU32) -> impl Iterator<Item = u32> {
        let is_one = |entry: &u32| *entry != NONE;
        let older =
            move |entry: &u32| Some(self.entries.get(*entry as usize)?.older.load(Relaxed)).filter(is_one);
        core::iter::successors(Some(first.load(Relaxed)).filter(is_one), older).take(FRAMES_MAX + 1)
    }

    /// Its counts and links, to be damaged.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &AtomicU32> {
        let lists = self.lists.iter().flatten().flat_map(|list| [&list.blocks, &list.newest]);
        let links = self.entries.iter().take(12).map(|entry| &entry.older);
        let own = [&self.busy, &self.frames, &self.fresh, &self.unused];
        own.into_iter().chain(lists).chain(links).chain(self.collected.numbers())
    }

    /// Frames of some entries, to be damaged.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(crate) fn first_frames(&self) -> impl Iterator<Item = &AtomicU32> {
        self.entries.iter().take(48).step_by(5).map(|entry| &entry.frame)
    }

    /// What is kept.
    fn all() -> impl Iterator<Item = Wanted> {
        Wanted::all().filter(|wanted| Self::keeps(wanted.order))
    }

    #[inline]
    fn list(&self, wanted: Wanted) -> &List {
        &self.lists[wanted.migratetype.index()][wanted.order.index()]
    }
}

/// Kept blocks, held by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<'k>(&'k Kept);

impl Held<'_> {
    /// Adds a block. `false` if there is no room: then the [largest](Self::largest) list should be given back.
    #[inline]
    pub(crate) fn push(self, wanted: Wanted, frame: u32) -> bool {
        let (kept, list) = (self.0, self.0.list(wanted));
        let frames = kept.frames.load(Relaxed).saturating_add(wanted.order.frames());
        if frames as usize > FRAMES_MAX {
            return false;
        }
        let unused = kept.unused.load(Relaxed);
        let at = if unused == NONE { kept.fresh.load(Relaxed) } else { unused };
        let Some(entry) = kept.entries.get(at as usize) else { return false };
        if unused == NONE {
            kept.fresh.store(at + 1, Relaxed);
        } else {
            kept.unused.store(entry.older.load(Relaxed), Relaxed);
        }
        entry.frame.store(frame, Relaxed);
        entry.older.store(list.newest.load(Relaxed), Relaxed);
        list.newest.store(at, Relaxed);
        list.blocks.store(list.blocks.load(Relaxed).saturating_add(1), Relaxed);
        kept.frames.store(frames, Relaxed);
        true
    }

    /// Whether this block is in the list. O(blocks of the list).
    pub(crate) fn contains(self, wanted: Wanted, frame: u32) -> bool {
        let is_this = |entry: u32| {
            self.0.entries.get(entry as usize).is_some_and(|entry| entry.frame.load(Relaxed) == frame)
        };
        self.0.chain(&self.0.list(wanted).newest).any(is_this)
    }

    /// What is collected of one pageblock.
    #[inline]
    pub(crate) const fn collected(&self) -> &Collected {
        &self.0.collected
    }

    /// The pageblock of the blocks of a list that were added last, if so many are of the same one.
    pub(crate) fn block_of_newest(self, wanted: Wanted, blocks: usize) -> Option<BlockIndex> {
        let entries = self.0.chain(&self.0.list(wanted).newest).take(blocks);
        let mut of = entries.filter_map(|entry| {
            Some(self.0.entries.get(entry as usize)?.frame.load(Relaxed) as usize / FRAMES)
        });
        let first = of.next()?;
        (of.take_while(|block| *block == first).count() + 1 == blocks).then_some(first)
    }

    /// Takes a block for a request: the last one of its list, or one that is collected.
    #[inline]
    pub(crate) fn pop_any(self, wanted: Wanted) -> Option<u32> {
        let is_single = wanted.order == Order::ZERO;
        self.pop(wanted).or_else(|| if is_single { self.0.collected.pop(wanted.migratetype) } else { None })
    }

    /// Takes the block of a list that was added last.
    #[inline]
    pub(crate) fn pop(self, wanted: Wanted) -> Option<u32> {
        let (kept, list) = (self.0, self.0.list(wanted));
        let blocks = list.blocks.load(Relaxed).checked_sub(1)?;
        let newest = list.newest.load(Relaxed);
        let entry = kept.entries.get(newest as usize)?;
        list.newest.store(entry.older.load(Relaxed), Relaxed);
        list.blocks.store(blocks, Relaxed);
        entry.older.store(kept.unused.load(Relaxed), Relaxed);
        kept.unused.store(newest, Relaxed);
        self.note_less(wanted.order.frames());
        Some(entry.frame.load(Relaxed))
    }

    /// The list with the most frames.
    pub(crate) fn largest(self) -> Option<Wanted> {
        let frames = |wanted: &Wanted| self.0.list(*wanted).blocks.load(Relaxed) << wanted.order.get();
        Kept::all().max_by_key(frames).filter(|wanted| frames(wanted) > 0)
    }

    /// Forgets a list whose blocks cannot be found.
    #[cold]
    pub(crate) fn forget(self, wanted: Wanted) {
        let list = self.0.list(wanted);
        self.note_less(list.blocks.swap(0, Relaxed) << wanted.order.get());
        list.newest.store(NONE, Relaxed);
    }

    /// Blocks of a list.
    pub(crate) fn blocks(self, wanted: Wanted) -> usize {
        self.0.list(wanted).blocks.load(Relaxed) as usize
    }

    fn note_less(self, frames: u32) {
        self.0.frames.store(self.0.frames.load(Relaxed).saturating_sub(frames), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use pageset_core::MigrateType;

    use super::*;

    const SINGLE: Wanted = Wanted { order: Order::ZERO, migratetype: MigrateType::Movable };

    fn held<R>(kept: &Kept, work: impl FnOnce(Held<'_>) -> R) -> R {
        kept.try_with(work).expect("nobody else is here")
    }

    #[test]
    fn the_newest_come_back_first() {
        let kept = Kept::new();
        held(&kept, |held| {
            for round in 0..100 {
                (0..40).for_each(|frame| assert!(held.push(SINGLE, round * 40 + frame)));
                assert!(kept.try_with(|_| ()).is_none(), "somebody is here");
                assert!(kept.iter().eq((round * 40..round * 40 + 40).rev()));
                let newest: Vec<u32> = (0..10).map_while(|_| held.pop(SINGLE)).collect();
                assert!(newest.into_iter().eq((round * 40 + 30..round * 40 + 40).rev()));
                assert!((0..5).all(|frame| held.push(SINGLE, frame)) && kept.is_sound());
                assert_eq!(core::iter::from_fn(|| held.pop(SINGLE)).count(), 35);
                assert_eq!((held.pop(SINGLE), kept.frames(), kept.is_sound()), (None, 0, true));
            }
        });
    }

    #[test]
    fn lists_share_their_room() {
        let kept = Kept::new();
        let large = Wanted { order: Order::new(3).expect("small"), ..SINGLE };
        held(&kept, |held| {
            let single = (0..100).take_while(|frame| held.push(SINGLE, *frame)).count();
            let blocks = (0..1000).take_while(|frame| held.push(large, frame * 8)).count();
            assert_eq!((single, blocks * 8 + 100), (100, kept.frames()));
            assert!(kept.frames() + 8 > FRAMES_MAX && kept.is_sound());
            assert_eq!(held.largest(), Some(large));
            while held.pop(large).is_some() {}
            assert_eq!((held.largest(), kept.frames()), (Some(SINGLE), 100));
            held.forget(SINGLE);
            assert_eq!((held.largest(), kept.frames(), kept.is_sound()), (None, 0, false));
        });
    }

    #[test]
    fn entries_are_used_again() {
        let kept = Kept::new();
        held(&kept, |held| {
            for round in 0..3 {
                let pushed = (0..).take_while(|frame| held.push(SINGLE, *frame)).count();
                assert_eq!(pushed, FRAMES_MAX, "round {round}");
                while held.pop(SINGLE).is_some() {}
            }
        });
    }
}
