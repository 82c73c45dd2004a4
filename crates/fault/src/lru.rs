//! The list of blocks in use, newest first, behind one lock per machine; tasks add to it by batches (Linux's LRU list
//! and its pagevecs). Nothing here reclaims: the list is what a reclaimer would look at, and its lock what faults pay.
//!
//! A block's mark says how far it is: 0 not listed, 1 in some task's batch, 2 on the list. Who frees a block takes the
//! mark back, so a batch may hold blocks that are free, or in use again by somebody else: an entry counts only while the
//! block is marked 1. So a block may get on the list by an entry of an earlier life, even before it is mapped.

use lock_api::Mutex;
use pageset_core::{Order, Pfn};

use crate::atomic::{Ordering::Relaxed, Padded};
use crate::frame_table::{Frame, FrameTable};

/// Blocks that a task collects before it takes the lock. Guess: the size of Linux's pagevec, 15.
const BATCH: usize = 15;

const UNLISTED: u8 = 0;
const PENDING: u8 = 1;
const LISTED: u8 = 2;

/// A task's blocks on their way to the list.
#[derive(Default)]
pub(crate) struct LruBatch {
    blocks: [Pfn; BATCH],
    len: usize,
}

/// The list: indices of the frame table + 1, 0 for none.
#[derive(Default)]
struct List {
    newest: u32,
    oldest: u32,
    blocks: u64,
}

/// The list and its lock.
pub(crate) struct Lru<R> {
    list: Padded<Mutex<R, List>>,
}

impl<R: lock_api::RawMutex> Lru<R> {
    pub(crate) fn new() -> Self {
        Self { list: Padded(Mutex::new(List::default())) }
    }

    /// Blocks on the list; those in batches are missing.
    pub(crate) fn len(&self) -> u64 {
        self.list.0.lock().blocks
    }

    /// Marks a block that is about to be mapped.
    #[inline]
    pub(crate) fn mark(frame: &Frame) {
        frame.listed.store(PENDING, Relaxed);
    }

    /// Adds a marked block.
    #[inline]
    pub(crate) fn add(&self, frames: &FrameTable, batch: &mut LruBatch, pfn: Pfn) {
        batch.blocks[batch.len] = pfn;
        batch.len += 1;
        if batch.len == BATCH {
            self.flush(frames, batch);
        }
    }

    /// Moves a batch to the list.
    #[cold]
    pub(crate) fn flush(&self, frames: &FrameTable, batch: &mut LruBatch) {
        if batch.len == 0 {
            return;
        }
        let mut list = self.list.0.lock();
        for pfn in &batch.blocks[..batch.len] {
            let frame = frames.frame(*pfn);
            if frame.listed.compare_exchange(PENDING, LISTED, Relaxed, Relaxed).is_ok() {
                list.push(frames, *pfn);
            }
        }
        batch.len = 0;
    }

    /// Forgets blocks that are about to be freed. One hold of the lock, if any of them is on the list.
    pub(crate) fn remove(&self, frames: &FrameTable, blocks: &[(Pfn, Order)]) {
        let is_listed = |(pfn, _): &(Pfn, Order)| {
            let mark = &frames.frame(*pfn).listed;
            mark.load(Relaxed) == LISTED
                || mark.compare_exchange(PENDING, UNLISTED, Relaxed, Relaxed) == Err(LISTED)
        };
        let Some(first) = blocks.iter().position(is_listed) else { return };
        let mut list = self.list.0.lock();
        for block in &blocks[first..] {
            if is_listed(block) {
                list.unlink(frames, block.0);
                frames.frame(block.0).listed.store(UNLISTED, Relaxed);
            }
        }
    }
}

impl List {
    fn push(&mut self, frames: &FrameTable, pfn: Pfn) {
        let link = frames.index(pfn) + 1;
        let frame = frames.frame(pfn);
        frame.newer.store(0, Relaxed);
        frame.older.store(self.newest, Relaxed);
        match self.newest.checked_sub(1) {
            Some(newest) => frames.frame(frames.pfn(newest)).newer.store(link, Relaxed),
            None => self.oldest = link,
        }
        self.newest = link;
        self.blocks += 1;
    }

    fn unlink(&mut self, frames: &FrameTable, pfn: Pfn) {
        let frame = frames.frame(pfn);
        let (newer, older) = (frame.newer.load(Relaxed), frame.older.load(Relaxed));
        match newer.checked_sub(1) {
            Some(newer) => frames.frame(frames.pfn(newer)).older.store(older, Relaxed),
            None => self.newest = older,
        }
        match older.checked_sub(1) {
            Some(older) => frames.frame(frames.pfn(older)).newer.store(newer, Relaxed),
            None => self.oldest = newer,
        }
        self.blocks -= 1;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::vec::Vec;

    type TestLru = Lru<parking_lot::RawMutex>;

    fn newest_first(lru: &TestLru, frames: &FrameTable) -> Vec<u64> {
        let mut at = lru.list.0.lock().newest;
        let mut pfns = Vec::new();
        while let Some(index) = at.checked_sub(1) {
            pfns.push(frames.pfn(index).0);
            at = frames.frame(frames.pfn(index)).older.load(Relaxed);
        }
        pfns
    }

    #[test]
    fn blocks_leave_from_everywhere() {
        let (frames, lru, mut batch) = (FrameTable::new(0..40), TestLru::new(), LruBatch::default());
        for pfn in (0..17).map(Pfn) {
            TestLru::mark(frames.frame(pfn));
            lru.add(&frames, &mut batch, pfn);
        }
        assert_eq!(lru.len(), 15);
        let gone = [0, 7, 14, 16].map(|pfn| (Pfn(pfn), Order::ZERO));
        lru.remove(&frames, &gone);
        lru.flush(&frames, &mut batch);
        assert_eq!(newest_first(&lru, &frames), [15, 13, 12, 11, 10, 9, 8, 6, 5, 4, 3, 2, 1]);
        assert_eq!(lru.len(), 13);
    }

    #[test]
    fn a_block_that_came_back_before_the_flush_is_listed_once() {
        let (frames, lru) = (FrameTable::new(0..4), TestLru::new());
        let (mut first, mut second) = (LruBatch::default(), LruBatch::default());
        TestLru::mark(frames.frame(Pfn(1)));
        lru.add(&frames, &mut first, Pfn(1));
        lru.remove(&frames, &[(Pfn(1), Order::ZERO)]);
        TestLru::mark(frames.frame(Pfn(1)));
        lru.add(&frames, &mut second, Pfn(1));
        lru.flush(&frames, &mut first);
        lru.flush(&frames, &mut second);
        assert_eq!(newest_first(&lru, &frames), [1]);
    }

    /// Found by row 9 of the race catalogue.
    #[test]
    fn a_block_that_nobody_mapped_in_the_end_may_be_listed_already() {
        let (frames, lru) = (FrameTable::new(0..4), TestLru::new());
        let mut of_earlier_life = LruBatch::default();
        TestLru::mark(frames.frame(Pfn(1)));
        lru.add(&frames, &mut of_earlier_life, Pfn(1));
        lru.remove(&frames, &[(Pfn(1), Order::ZERO)]);
        TestLru::mark(frames.frame(Pfn(1)));
        lru.flush(&frames, &mut of_earlier_life);
        lru.remove(&frames, &[(Pfn(1), Order::ZERO)]);
        assert_eq!((lru.len(), newest_first(&lru, &frames)), (0, Vec::new()));
    }
}
