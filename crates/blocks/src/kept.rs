//! Blocks that a CPU freed to other CPUs' pageblocks and has not given back yet: lists by type and order that share their
//! room, for whoever gets hold of them.

use pageset_core::{COSTLY_ORDER, Order};

use crate::atomic::{Acquire, AtomicU32, Relaxed, Release, array, constant};
use crate::cpu_lists::{TYPES, Wanted};

/// Blocks of a chunk, the unit in which lists get room: a line of cache.
const CHUNK_BLOCKS: usize = if cfg!(loom) { 1 } else { 16 };
/// Chunks of all lists together. Loom sees each of them, so there it has two.
const CHUNKS: usize = if cfg!(loom) { 2 } else { 128 };
/// Orders that are kept.
const KEPT_ORDERS: usize = COSTLY_ORDER + 1;
/// Frames that a CPU keeps of a zone at most. With twice as many, CPUs meet 5 % less often and keep half as much again.
const FRAMES_MAX: u32 = 2048;
/// No chunk.
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
    /// Chunks from this one on were never used.
    fresh: AtomicU32,
    /// The first of those that nobody uses any more; `older` leads to the next.
    unused: AtomicU32,
    lists: [[List; KEPT_ORDERS]; TYPES],
    links: [Links; CHUNKS],
    chunks: [Chunk; CHUNKS],
}

/// Chunks of one type and order: all but the newest are full.
#[derive(Debug)]
struct List {
    blocks: AtomicU32,
    newest: AtomicU32,
    oldest: AtomicU32,
}

#[derive(Debug)]
#[repr(align(64))]
struct Chunk([AtomicU32; CHUNK_BLOCKS]);

/// The chunks of the same list that became full before and after this one.
#[derive(Debug)]
struct Links {
    older: AtomicU32,
    newer: AtomicU32,
}

impl Kept {
    constant! {
        pub(crate) fn new() -> Self {
            Self {
                busy: AtomicU32::new(0),
                frames: AtomicU32::new(0),
                fresh: AtomicU32::new(0),
                unused: AtomicU32::new(NONE),
                lists: array!(array!(List {
                    blocks: AtomicU32::new(0),
                    newest: AtomicU32::new(NONE),
                    oldest: AtomicU32::new(NONE),
                })),
                chunks: array!(Chunk(array!(AtomicU32::new(0)))),
                links: array!(Links { older: AtomicU32::new(NONE), newer: AtomicU32::new(NONE) }),
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
        self.frames.load(Relaxed) as usize
    }

    /// Whether there is a block of this type and order.
    #[inline]
    pub(crate) fn has(&self, wanted: Wanted) -> bool {
        Self::keeps(wanted.order) && self.list(wanted).blocks.load(Relaxed) > 0
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
        self.lists.iter().flatten().flat_map(move |list| {
            let chunk = |chunk: u32| (chunk != NONE).then_some(chunk);
            let newest = chunk(list.newest.load(Relaxed));
            let older = move |now: &u32| chunk(self.links.get(*now as usize)?.older.load(Relaxed));
            let mut left = list.blocks.load(Relaxed) as usize;
            // No more chunks than there are: somebody may change them meanwhile.
            core::iter::successors(newest, older).take(CHUNKS).flat_map(move |chunk| {
                let len = newest_len(left);
                left = left.saturating_sub(len);
                let chunk = self.chunks.get(chunk as usize).map_or(&[][..], |chunk| &chunk.0[..len]);
                chunk.iter().map(|frame| frame.load(Relaxed))
            })
        })
    }

    /// Whether somebody is here.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Relaxed) != 0
    }

    /// Whether its numbers agree with each other: each chunk that was ever used is in one list, or unused. Exact only while nobody
    /// else is here.
    pub(crate) fn is_sound(&self) -> bool {
        let mut seen = 0_u128;
        let mut frames = 0;
        for wanted in Self::all() {
            let list = self.list(wanted);
            let blocks = list.blocks.load(Relaxed) as usize;
            frames += blocks << wanted.order.get();
            let oldest = list.oldest.load(Relaxed);
            if !self.see_chain(list.newest.load(Relaxed), blocks.div_ceil(CHUNK_BLOCKS), oldest, &mut seen) {
                return false;
            }
        }
        let unused = core::iter::successors(Some(self.unused.load(Relaxed)), |chunk| {
            self.links.get(*chunk as usize).map(|links| links.older.load(Relaxed))
        });
        // One that was seen before is in a list, or in a circle.
        let are_unused = unused.take_while(|chunk| *chunk != NONE).all(|chunk| see(chunk, &mut seen));
        are_unused && frames == self.frames() && seen.count_ones() == self.fresh.load(Relaxed)
    }

    /// Sees the chunks of a list: so many, from the newest to the oldest one, each of which names the one after it.
    fn see_chain(&self, newest: u32, chunks: usize, oldest: u32, seen: &mut u128) -> bool {
        let (mut newer, mut chunk) = (NONE, newest);
        for _ in 0..chunks {
            let Some(links) = self.links.get(chunk as usize) else { return false };
            if links.newer.load(Relaxed) != newer || !see(chunk, seen) {
                return false;
            }
            newer = chunk;
            chunk = links.older.load(Relaxed);
        }
        (newer, chunk) == (oldest, NONE)
    }

    /// Its counts and links, to be damaged.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &AtomicU32> {
        let lists = self.lists.iter().flatten().flat_map(|list| [&list.blocks, &list.newest, &list.oldest]);
        let links = self.links.iter().take(6).flat_map(|links| [&links.older, &links.newer]);
        [&self.busy, &self.frames, &self.fresh, &self.unused].into_iter().chain(lists).chain(links)
    }

    /// Frames of the first chunks, to be damaged.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(crate) fn frames_of_chunks(&self) -> impl Iterator<Item = &AtomicU32> {
        self.chunks.iter().take(3).flat_map(|chunk| chunk.0.iter().step_by(5))
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

/// Sees a chunk. `false` if it was seen before, or is none.
fn see(chunk: u32, seen: &mut u128) -> bool {
    let bit = 1_u128.checked_shl(chunk).unwrap_or(0);
    let is_new = bit != 0 && *seen & bit == 0;
    *seen |= bit;
    is_new
}

/// Blocks in the newest chunk of a list with so many.
const fn newest_len(blocks: usize) -> usize {
    if blocks == 0 { 0 } else { (blocks - 1) % CHUNK_BLOCKS + 1 }
}

/// Kept blocks, held by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<'k>(&'k Kept);

impl<'k> Held<'k> {
    /// Adds a block. `false` if there is no room: then the [largest](Self::largest) list should give some back.
    #[inline]
    pub(crate) fn push(self, wanted: Wanted, frame: u32) -> bool {
        let (kept, list) = (self.0, self.0.list(wanted));
        let frames = kept.frames.load(Relaxed).saturating_add(wanted.order.frames());
        let blocks = list.blocks.load(Relaxed);
        let place = blocks as usize % CHUNK_BLOCKS;
        if frames > FRAMES_MAX || (place == 0 && !self.open_chunk(list)) {
            return false;
        }
        let Some(newest) = kept.chunks.get(list.newest.load(Relaxed) as usize) else { return false };
        newest.0[place].store(frame, Relaxed);
        list.blocks.store(blocks.saturating_add(1), Relaxed);
        kept.frames.store(frames, Relaxed);
        true
    }

    /// Takes the block of a list that was added last.
    #[inline]
    pub(crate) fn pop_newest(self, wanted: Wanted) -> Option<u32> {
        let (kept, list) = (self.0, self.0.list(wanted));
        let left = list.blocks.load(Relaxed).checked_sub(1)?;
        let newest = list.newest.load(Relaxed);
        let place = left as usize % CHUNK_BLOCKS;
        let frame = kept.chunks.get(newest as usize)?.0[place].load(Relaxed);
        self.note_less(list, wanted.order, 1);
        if place == 0 {
            self.close_chunk(list, newest);
        }
        Some(frame)
    }

    /// Takes the blocks of a list that have been here longest, a chunk of them.
    pub(crate) fn pop_oldest(self, wanted: Wanted) -> Option<impl Iterator<Item = u32> + use<'k>> {
        let (kept, list) = (self.0, self.0.list(wanted));
        let oldest = list.oldest.load(Relaxed);
        let chunk = kept.chunks.get(oldest as usize)?;
        let blocks = list.blocks.load(Relaxed) as usize;
        let len = if oldest == list.newest.load(Relaxed) { newest_len(blocks) } else { CHUNK_BLOCKS };
        self.note_less(list, wanted.order, len as u32);
        self.close_chunk(list, oldest);
        Some(chunk.0[..len].iter().map(|frame| frame.load(Relaxed)))
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
        self.note_less(list, wanted.order, list.blocks.load(Relaxed));
        list.newest.store(NONE, Relaxed);
        list.oldest.store(NONE, Relaxed);
    }

    /// Blocks of a list.
    pub(crate) fn blocks(self, wanted: Wanted) -> usize {
        self.0.list(wanted).blocks.load(Relaxed) as usize
    }

    fn note_less(self, list: &List, order: Order, blocks: u32) {
        let less =
            |number: &AtomicU32, by: u32| number.store(number.load(Relaxed).saturating_sub(by), Relaxed);
        less(&list.blocks, blocks);
        less(&self.0.frames, blocks << order.get());
    }

    /// Gives a list one more chunk, if there is any.
    fn open_chunk(self, list: &List) -> bool {
        let kept = self.0;
        let unused = kept.unused.load(Relaxed);
        let chunk = if unused == NONE { kept.fresh.load(Relaxed) } else { unused };
        let Some(links) = kept.links.get(chunk as usize) else { return false };
        if unused == NONE {
            kept.fresh.store(chunk + 1, Relaxed);
        } else {
            kept.unused.store(links.older.load(Relaxed), Relaxed);
        }
        let older = list.newest.load(Relaxed);
        links.older.store(older, Relaxed);
        links.newer.store(NONE, Relaxed);
        match kept.links.get(older as usize) {
            Some(links) => links.newer.store(chunk, Relaxed),
            None => list.oldest.store(chunk, Relaxed),
        }
        list.newest.store(chunk, Relaxed);
        true
    }

    /// Takes an empty chunk out of its list.
    fn close_chunk(self, list: &List, chunk: u32) {
        let kept = self.0;
        let Some(links) = kept.links.get(chunk as usize) else { return };
        let (older, newer) = (links.older.load(Relaxed), links.newer.load(Relaxed));
        kept.links.get(older as usize).map_or(&list.oldest, |links| &links.newer).store(newer, Relaxed);
        kept.links.get(newer as usize).map_or(&list.newest, |links| &links.older).store(older, Relaxed);
        links.older.store(kept.unused.load(Relaxed), Relaxed);
        kept.unused.store(chunk, Relaxed);
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
    fn the_newest_come_back_and_the_oldest_go() {
        let kept = Kept::new();
        let told = kept.try_with(|held| {
            for round in 0..100 {
                (0..40).for_each(|frame| assert!(held.push(SINGLE, round * 40 + frame)));
                assert!(kept.try_with(|_| ()).is_none(), "somebody is here");
                let mut all: Vec<u32> = kept.iter().collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(round * 40..round * 40 + 40));
                let newest: Vec<u32> = (0..10).map_while(|_| held.pop_newest(SINGLE)).collect();
                assert!(newest.into_iter().eq((round * 40 + 30..round * 40 + 40).rev()));
                let oldest: Vec<u32> = core::iter::from_fn(|| held.pop_oldest(SINGLE)).flatten().collect();
                assert!(oldest.into_iter().eq(round * 40..round * 40 + 30));
                assert_eq!((held.pop_newest(SINGLE), kept.frames()), (None, 0));
            }
        });
        assert_eq!(told, Some(()));
    }

    #[test]
    fn lists_share_their_room() {
        let kept = Kept::new();
        let large = Wanted { order: Order::new(3).expect("small"), ..SINGLE };
        held(&kept, |held| {
            let single = (0..100).take_while(|frame| held.push(SINGLE, *frame)).count();
            let blocks = (0..1000).take_while(|frame| held.push(large, frame * 8)).count();
            assert_eq!((single, blocks * 8 + 100), (100, kept.frames()));
            assert!(kept.frames() + 8 > FRAMES_MAX as usize);
            assert_eq!(held.largest(), Some(large));
            while held.pop_oldest(large).is_some() {}
            assert_eq!((held.largest(), kept.frames()), (Some(SINGLE), 100));
        });
    }

    #[test]
    fn chunks_are_used_again() {
        let kept = Kept::new();
        held(&kept, |held| {
            for round in 0..3 {
                let pushed = (0..).take_while(|frame| held.push(SINGLE, *frame)).count();
                assert_eq!(pushed, FRAMES_MAX as usize, "round {round}");
                while held.pop_newest(SINGLE).is_some() {}
            }
        });
    }
}
