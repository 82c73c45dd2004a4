//! A batch: a buffer for blocks of one class on their way between an array and the base.

use super::Entry;

/// The number of blocks that may move at once: half of the largest array.
pub(crate) const BATCH_MAX: usize = 216;

/// The number of pageblocks that may move at once: half of the largest array of pageblocks.
pub(crate) const PAGEBLOCKS_MAX: usize = 12;

/// The number of entries that a restartable sequence copies by one 16-byte move.
pub(crate) const COPIED_TOGETHER: usize = 4;

/// A list of blocks with a fixed capacity. The last entry is used first, as in an array. `push_front` adds a
/// block in front of all other blocks.
pub(crate) struct Batch<Entries: ?Sized = [Entry]> {
    start: usize,
    end: usize,
    /// Room for four entries more than the capacity, because a copy moves four entries at a time and may
    /// write up to three entries too many.
    entries: Entries,
}

impl Batch<[Entry; BATCH_MAX + COPIED_TOGETHER]> {
    /// Makes an empty batch with room for [`BATCH_MAX`] blocks of any class.
    pub(crate) const fn new() -> Self {
        Self { start: BATCH_MAX, end: BATCH_MAX, entries: [Entry::dirty(0); _] }
    }
}

impl Batch<[Entry; PAGEBLOCKS_MAX + COPIED_TOGETHER]> {
    /// Makes an empty batch with room for [`PAGEBLOCKS_MAX`] pageblocks. Clearing a batch for all classes
    /// would take longer.
    pub(crate) const fn of_pageblocks() -> Self {
        Self { start: PAGEBLOCKS_MAX, end: PAGEBLOCKS_MAX, entries: [Entry::dirty(0); _] }
    }
}

impl Batch {
    /// The number of blocks that fit into the batch.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.len() - COPIED_TOGETHER
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(crate) fn as_slice(&self) -> &[Entry] {
        &self.entries[self.start..self.end]
    }

    /// Puts a block in front. All blocks that are already in the batch are used before the new block.
    #[inline]
    pub(crate) fn push_front(&mut self, entry: Entry) {
        self.start -= 1;
        self.entries[self.start] = entry;
    }

    /// Takes the block to use first.
    pub(crate) fn pop_back(&mut self) -> Option<Entry> {
        if self.start == self.end {
            return None;
        }
        self.end -= 1;
        Some(self.entries[self.end])
    }

    /// Fills this empty batch with the blocks of a slice, in the same order.
    #[inline]
    pub(crate) fn fill(&mut self, entries: &[Entry]) {
        self.start = self.end - entries.len();
        self.entries[self.start..self.end].copy_from_slice(entries);
    }

    /// Pointer to the front block. A copy may read [`len`](Self::len) entries from this pointer on, and up to
    /// three entries more.
    #[cfg_attr(not(sequences), allow(dead_code, reason = "only sequences need it"))]
    pub(crate) fn front(&self) -> *const Entry {
        self.entries.as_ptr().wrapping_add(self.start)
    }

    /// Removes the `count` front blocks, which are now in an array.
    pub(crate) fn forget_front(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Pointer to the memory that a copy fills: room for [`capacity`](Self::capacity) blocks, and for the
    /// three entries that the copy may write too many. The batch must be empty.
    #[cfg_attr(not(sequences), allow(dead_code, reason = "only sequences need it"))]
    pub(crate) fn room(&mut self) -> *mut Entry {
        self.entries.as_mut_ptr()
    }

    /// Notes how many blocks a copy wrote to the [`room`](Self::room).
    #[cfg_attr(not(sequences), allow(dead_code, reason = "only sequences need it"))]
    pub(crate) fn note_filled(&mut self, count: usize) {
        self.start = 0;
        self.end = count.min(self.capacity());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_first_is_used_first() {
        let batch: &mut Batch = &mut Batch::new();
        (0..BATCH_MAX as u32).for_each(|frame| batch.push_front(Entry::dirty(frame)));
        assert_eq!(batch.pop_back(), Some(Entry::dirty(0)));
        batch.forget_front(BATCH_MAX - 3);
        assert_eq!(batch.as_slice(), [Entry::dirty(2), Entry::dirty(1)]);
        batch.forget_front(3);
        assert_eq!(batch.pop_back(), None);
        let copy: &mut Batch = &mut Batch::of_pageblocks();
        copy.fill(&[Entry::dirty(5), Entry::dirty(4)]);
        copy.push_front(Entry::dirty(6));
        assert_eq!((copy.pop_back(), copy.len()), (Some(Entry::dirty(4)), 2));
        batch.note_filled(1);
        assert_eq!((batch.len(), batch.pop_back()), (1, Some(Entry::dirty(BATCH_MAX as u32 - 1))));
    }
}
