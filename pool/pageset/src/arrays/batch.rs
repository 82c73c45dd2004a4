//! Blocks of one class on their way between an array and the base.

use super::Entry;

/// Most blocks that pass at once: half of the largest array.
pub(crate) const BATCH_MAX: usize = 216;

/// Most pageblocks that pass at once: half of their array.
pub(crate) const PAGEBLOCKS_MAX: usize = 12;

/// Entries that sequences copy at once: what one 16-byte move holds.
pub(crate) const COPIED_TOGETHER: usize = 4;

/// Blocks, as many as it has room for. An array gives its last entry first, so what is to be used first is put in front of
/// the others last, and stands at the end.
pub(crate) struct Batch<Entries: ?Sized = [Entry]> {
    start: usize,
    end: usize,
    /// With room for what a copy writes or reads too much.
    entries: Entries,
}

impl Batch<[Entry; BATCH_MAX + COPIED_TOGETHER]> {
    /// Room for up to [`BATCH_MAX`] blocks of any class.
    pub(crate) const fn new() -> Self {
        Self { start: BATCH_MAX, end: BATCH_MAX, entries: [Entry::dirty(0); _] }
    }
}

impl Batch<[Entry; PAGEBLOCKS_MAX + COPIED_TOGETHER]> {
    /// Room for up to [`PAGEBLOCKS_MAX`] pageblocks: so few that it takes longer to clear room for all.
    pub(crate) const fn of_pageblocks() -> Self {
        Self { start: PAGEBLOCKS_MAX, end: PAGEBLOCKS_MAX, entries: [Entry::dirty(0); _] }
    }
}

impl Batch {
    /// How many blocks it has room for.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.len() - COPIED_TOGETHER
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(crate) fn as_slice(&self) -> &[Entry] {
        &self.entries[self.start..self.end]
    }

    /// Puts a block in front: it is used after all that are there.
    #[inline]
    pub(crate) fn push_front(&mut self, entry: Entry) {
        self.start -= 1;
        self.entries[self.start] = entry;
    }

    /// Takes the block that is used first.
    pub(crate) fn pop_back(&mut self) -> Option<Entry> {
        if self.start == self.end {
            return None;
        }
        self.end -= 1;
        Some(self.entries[self.end])
    }

    /// Puts blocks in an order in which they stood in a batch into this one, which is empty.
    #[inline]
    pub(crate) fn fill(&mut self, entries: &[Entry]) {
        self.start = self.end - entries.len();
        self.entries[self.start..self.end].copy_from_slice(entries);
    }

    /// The foremost block: [`len`](Self::len) may be read from here, and as much more as a copy reads too much.
    #[cfg_attr(not(sequences), allow(dead_code, reason = "only sequences need it"))]
    pub(crate) fn front(&self) -> *const Entry {
        self.entries.as_ptr().wrapping_add(self.start)
    }

    /// Takes the `count` foremost blocks away: an array has them now.
    pub(crate) fn forget_front(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Room for [`capacity`](Self::capacity) blocks and what a copy writes too much, in a batch that is empty.
    #[cfg_attr(not(sequences), allow(dead_code, reason = "only sequences need it"))]
    pub(crate) fn room(&mut self) -> *mut Entry {
        self.entries.as_mut_ptr()
    }

    /// Says how many blocks were written to the [`room`](Self::room).
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
