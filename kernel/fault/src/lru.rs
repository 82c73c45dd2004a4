//! Lists of blocks in use, newest first, each with a lock. A task collects new blocks in its *batch*, and
//! moves a full batch to a list under one hold of the list's lock. Linux has such lists for each node (LRU).
//! Linux called these batches pagevecs, and now calls them folio batches. This crate never searches the lists
//! for pages to reclaim. The crate keeps the lists only so that its faults take the same locks as faults in
//! Linux.
//!
//! Each block has a mark: 0 for a free block, 1 for a block in use that is not yet on a list, and 2 or more
//! for a block on a list. A task that frees a block clears the mark, but does not search the batches of other
//! tasks. So a batch may have old entries of blocks that are free or have a new user. Only blocks with mark 1
//! (in use, not yet on a list) move from a batch to a list. If a block with a new user has mark 1 again, an
//! old entry may move the block to a list, even before a word maps the block. Such an early move is safe,
//! because the new user would soon add the block to a list anyway, and a free takes the block off its list.

use alloc::boxed::Box;

use lock_api::Mutex;
use pageset_core::{CpuId, Order, Pfn};

use crate::atomic::{Ordering::Relaxed, Padded};
use crate::frame_table::{Frame, FrameTable};

/// The number of blocks that a task collects before it takes a list's lock. `BATCH` is a guess at the size of
/// Linux's pagevec.
const BATCH: usize = 15;

const UNLISTED: u16 = 0;
const PENDING: u16 = 1;
/// The mark of blocks on list 0. The mark of blocks on list n is `LISTED + n`.
const LISTED: u16 = 2;
/// The largest number of lists that a mark of 16 bits can distinguish.
pub(crate) const LISTS_MAX: u16 = u16::MAX - LISTED;

/// Blocks that a task has collected and that are not yet on a list.
#[derive(Default)]
pub(crate) struct LruBatch {
    blocks: [Pfn; BATCH],
    len: usize,
}

/// One list of blocks. A link between blocks is a frame's index + 1, or 0 at an end of the list.
#[derive(Default)]
struct List {
    newest: u32,
    oldest: u32,
    blocks: u64,
}

/// The lists, each with its lock.
pub(crate) struct Lru<R> {
    lists: Box<[Padded<Mutex<R, List>>]>,
}

impl<R: lock_api::RawMutex> Lru<R> {
    /// Makes `lists` LRU lists, at least one and at most [`LISTS_MAX`]. The number of a CPU's list is the
    /// CPU's number modulo the number of lists.
    pub(crate) fn new(lists: u16) -> Self {
        Self { lists: (0..lists.clamp(1, LISTS_MAX)).map(|_| Padded(Mutex::new(List::default()))).collect() }
    }

    /// The number of blocks on all lists. Blocks in batches do not count.
    pub(crate) fn len(&self) -> u64 {
        self.lists.iter().map(|list| list.0.lock().blocks).sum()
    }

    /// Gives mark 1 to a block that a task is about to map.
    #[inline]
    pub(crate) fn mark(frame: &Frame) {
        debug_assert_eq!(frame.listed.load(Relaxed), UNLISTED, "a freed block has no mark");
        frame.listed.store(PENDING, Relaxed);
    }

    /// Whether a block has mark 0. Free blocks have mark 0.
    pub(crate) fn is_unmarked(frame: &Frame) -> bool {
        frame.listed.load(Relaxed) == UNLISTED
    }

    /// Adds a block with mark 1 to the task's batch. Moves a full batch to the list of the task's CPU.
    #[inline]
    pub(crate) fn add(&self, frames: &FrameTable, cpu: CpuId, batch: &mut LruBatch, pfn: Pfn) {
        batch.blocks[batch.len] = pfn;
        batch.len += 1;
        if batch.len == BATCH {
            self.flush(frames, cpu, batch);
        }
    }

    /// Moves the blocks with mark 1 from a batch to the list of the task's CPU, and empties the batch.
    #[cold]
    pub(crate) fn flush(&self, frames: &FrameTable, cpu: CpuId, batch: &mut LruBatch) {
        if batch.len == 0 {
            return;
        }
        let index = cpu.index() % self.lists.len();
        let mut list = self.lists[index].0.lock();
        for pfn in &batch.blocks[..batch.len] {
            let frame = frames.frame(*pfn);
            if frame.listed.compare_exchange(PENDING, LISTED + index as u16, Relaxed, Relaxed).is_ok() {
                list.push(frames, *pfn);
            }
        }
        batch.len = 0;
    }

    /// Takes blocks off their lists before the caller frees them. Takes a list's lock only once for
    /// consecutive blocks on the same list.
    pub(crate) fn remove(&self, frames: &FrameTable, blocks: &[(Pfn, Order)]) {
        let mut held = None;
        for (pfn, _) in blocks {
            let frame = frames.frame(*pfn);
            let Some(index) = list_of(frame) else { continue };
            let list = match held.take() {
                Some((of, list)) if of == index => list,
                other => {
                    drop(other);
                    self.lists[usize::from(index)].0.lock()
                }
            };
            let (_, list) = held.insert((index, list));
            list.unlink(frames, *pfn);
            frame.listed.store(UNLISTED, Relaxed);
        }
    }
}

/// The number of the list that a block is on. If the block is still in a batch, clears the block's mark, so
/// that the batch's entry has no effect.
fn list_of(frame: &Frame) -> Option<u16> {
    match frame.listed.load(Relaxed) {
        UNLISTED => None,
        PENDING => {
            let found = frame.listed.compare_exchange(PENDING, UNLISTED, Relaxed, Relaxed).err();
            found.and_then(|mark| mark.checked_sub(LISTED))
        }
        mark => mark.checked_sub(LISTED),
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
        debug_assert!(self.blocks > 0, "block {pfn} is on a list that is empty");
        debug_assert_eq!(newer == 0, self.newest == frames.index(pfn) + 1, "block {pfn} and the list's end");
        debug_assert_eq!(
            older == 0,
            self.oldest == frames.index(pfn) + 1,
            "block {pfn} and the list's beginning"
        );
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
        let mut at = lru.lists[0].0.lock().newest;
        let mut pfns = Vec::new();
        while let Some(index) = at.checked_sub(1) {
            pfns.push(frames.pfn(index).0);
            at = frames.frame(frames.pfn(index)).older.load(Relaxed);
        }
        pfns
    }

    #[test]
    fn blocks_leave_from_everywhere() {
        let (frames, lru, mut batch) = (FrameTable::new(0..40), TestLru::new(1), LruBatch::default());
        for pfn in (0..17).map(Pfn) {
            TestLru::mark(frames.frame(pfn));
            lru.add(&frames, CpuId(0), &mut batch, pfn);
        }
        assert_eq!(lru.len(), 15);
        let gone = [0, 7, 14, 16].map(|pfn| (Pfn(pfn), Order::ZERO));
        lru.remove(&frames, &gone);
        lru.flush(&frames, CpuId(0), &mut batch);
        assert_eq!(newest_first(&lru, &frames), [15, 13, 12, 11, 10, 9, 8, 6, 5, 4, 3, 2, 1]);
        assert_eq!(lru.len(), 13);
    }

    #[test]
    fn blocks_of_several_lists_are_freed_together() {
        let (frames, lru) = (FrameTable::new(0..6), TestLru::new(2));
        for pfn in 0..6 {
            let mut batch = LruBatch::default();
            TestLru::mark(frames.frame(Pfn(pfn)));
            lru.add(&frames, CpuId(pfn as u32), &mut batch, Pfn(pfn));
            lru.flush(&frames, CpuId(pfn as u32), &mut batch);
        }
        assert_eq!(newest_first(&lru, &frames), [4, 2, 0]);
        lru.remove(&frames, &[0, 2, 1, 3].map(|pfn| (Pfn(pfn), Order::ZERO)));
        assert_eq!((newest_first(&lru, &frames), lru.len()), (std::vec![4], 2));
    }

    #[test]
    fn a_block_that_came_back_before_the_flush_is_listed_once() {
        let (frames, lru) = (FrameTable::new(0..4), TestLru::new(1));
        let (mut first, mut second) = (LruBatch::default(), LruBatch::default());
        TestLru::mark(frames.frame(Pfn(1)));
        lru.add(&frames, CpuId(0), &mut first, Pfn(1));
        lru.remove(&frames, &[(Pfn(1), Order::ZERO)]);
        TestLru::mark(frames.frame(Pfn(1)));
        lru.add(&frames, CpuId(0), &mut second, Pfn(1));
        lru.flush(&frames, CpuId(0), &mut first);
        lru.flush(&frames, CpuId(0), &mut second);
        assert_eq!(newest_first(&lru, &frames), [1]);
    }

    /// Regression test for a bug that the test of race 9 of spec §1.7 found.
    #[test]
    fn a_block_that_nobody_mapped_in_the_end_may_be_listed_already() {
        let (frames, lru) = (FrameTable::new(0..4), TestLru::new(1));
        let mut of_earlier_life = LruBatch::default();
        TestLru::mark(frames.frame(Pfn(1)));
        lru.add(&frames, CpuId(0), &mut of_earlier_life, Pfn(1));
        lru.remove(&frames, &[(Pfn(1), Order::ZERO)]);
        TestLru::mark(frames.frame(Pfn(1)));
        lru.flush(&frames, CpuId(0), &mut of_earlier_life);
        lru.remove(&frames, &[(Pfn(1), Order::ZERO)]);
        assert_eq!((lru.len(), newest_first(&lru, &frames)), (0, Vec::new()));
    }
}
