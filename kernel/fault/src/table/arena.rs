//! All page tables of an engine, in one array. Each page table has words and a lock. Free page tables form a
//! stack.

use alloc::boxed::Box;

use lock_api::Mutex;
use pageset_core::Pfn;

use crate::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, Padded};
use crate::geometry::Geometry;
use crate::pte::{Pte, TableId};

/// The value of [`Table::frame`] in a free table: no frame.
const NO_FRAME: u64 = u64::MAX;

/// The data of a table, without its words.
struct Table<R> {
    /// The table's own lock, which tasks take under P1 and P3.
    lock: Mutex<R, ()>,
    /// Whether the table was taken out of the tree. If the strategy uses the table's lock, a task sets the
    /// flag only under this lock.
    stray: AtomicBool,
    /// The frame that the table occupies, or [`NO_FRAME`].
    frame: AtomicU64,
    /// The number of the next free table, plus 1. 0 if there is no next free table.
    next_free: AtomicU32,
}

/// All tables of an engine.
pub(crate) struct TableArena<R> {
    words: Box<[AtomicU64]>,
    tables: Box<[Padded<Table<R>>]>,
    /// The head of the stack of free tables. The low half is the number of the first free table, plus 1. The
    /// high half counts changes of the stack. Race: between a task's load and its compare-exchange, the stack
    /// changes and then has the same first table again. The high half differs, so the compare-exchange fails
    /// and the task tries again.
    free: AtomicU64,
    index_bits: u8,
}

impl<R: lock_api::RawMutex> TableArena<R> {
    /// Makes `count` free tables. The words of a free table are all [`Pte::EMPTY`].
    pub(crate) fn new(geometry: Geometry, count: u32) -> Self {
        let table = |id: u32| Table {
            lock: Mutex::new(()),
            stray: AtomicBool::new(false),
            frame: AtomicU64::new(NO_FRAME),
            next_free: AtomicU32::new(if id + 1 < count { id + 2 } else { 0 }),
        };
        Self {
            words: (0..u64::from(count) << geometry.index_bits()).map(|_| AtomicU64::new(0)).collect(),
            tables: (0..count).map(|id| Padded(table(id))).collect(),
            free: AtomicU64::new(u64::from(count > 0)),
            index_bits: geometry.index_bits(),
        }
    }

    /// Takes a free table, whose words are all empty. After this call, the table occupies `frame`. Returns
    /// `None` if no table is free.
    pub(crate) fn take(&self, frame: Pfn) -> Option<TableId> {
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let id = (head as u32).checked_sub(1)?;
            let next = self.table(TableId(id)).next_free.load(Ordering::Relaxed);
            match self.exchange_head(head, next) {
                Ok(()) => {
                    let table = self.table(TableId(id));
                    debug_assert_eq!(table.frame.load(Ordering::Relaxed), NO_FRAME, "table {id} is in use");
                    debug_assert!(
                        self.holds_only(TableId(id), Pte::EMPTY),
                        "table {id} is free and not empty"
                    );
                    table.frame.store(frame.0, Ordering::Relaxed);
                    table.stray.store(false, Ordering::Relaxed);
                    return Some(TableId(id));
                }
                Err(found) => head = found,
            }
        }
    }

    /// Frees a table that no task can reach. Returns the frame that the table occupied.
    pub(crate) fn put(&self, id: TableId) -> Pfn {
        self.words_of(id).iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let frame = Pfn(self.table(id).frame.load(Ordering::Relaxed));
        debug_assert_ne!(frame.0, NO_FRAME, "{id:?} is free already");
        self.table(id).frame.store(NO_FRAME, Ordering::Relaxed);
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            self.table(id).next_free.store(head as u32, Ordering::Relaxed);
            match self.exchange_head(head, id.0 + 1) {
                Ok(()) => return frame,
                Err(found) => head = found,
            }
        }
    }

    fn exchange_head(&self, head: u64, first: u32) -> Result<(), u64> {
        let changed = ((head >> 32).wrapping_add(1) << 32) | u64::from(first);
        self.free.compare_exchange(head, changed, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    #[inline]
    fn table(&self, id: TableId) -> &Table<R> {
        &self.tables[id.0 as usize].0
    }

    /// The words of a table.
    #[inline]
    pub(crate) fn words_of(&self, id: TableId) -> &[AtomicU64] {
        let start = (id.0 as usize) << self.index_bits;
        &self.words[start..start + (1 << self.index_bits)]
    }

    /// Whether every word of a table equals `word`.
    pub(crate) fn holds_only(&self, id: TableId, word: Pte) -> bool {
        self.words_of(id).iter().all(|held| held.load(Ordering::Acquire) == word.bits())
    }

    /// One word of a table.
    #[inline]
    pub(crate) fn word(&self, id: TableId, index: u32) -> &AtomicU64 {
        &self.words[((id.0 as usize) << self.index_bits) | index as usize]
    }

    /// Reads a word with `Acquire`, so that this task sees the contents of the page or table that the word
    /// leads to (E1, E2).
    #[inline]
    pub(crate) fn load(&self, id: TableId, index: u32) -> Pte {
        Pte::from_bits(self.word(id, index).load(Ordering::Acquire))
    }

    /// The lock of a table.
    #[inline]
    pub(crate) fn lock_of(&self, id: TableId) -> &Mutex<R, ()> {
        &self.table(id).lock
    }

    /// Whether a table was taken out of the page-table tree.
    #[inline]
    pub(crate) fn is_stray(&self, id: TableId) -> bool {
        self.table(id).stray.load(Ordering::Relaxed)
    }

    /// Sets or clears the mark that a table was taken out of the page-table tree.
    pub(crate) fn set_stray(&self, id: TableId, stray: bool) {
        self.table(id).stray.store(stray, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn tables(count: u32) -> TableArena<parking_lot::RawMutex> {
        TableArena::new(Geometry::new(12, 1, 2).expect("a tiny geometry"), count)
    }

    #[test]
    fn tables_run_out_and_come_back_empty() {
        let tables = tables(2);
        let (first, second) = (tables.take(Pfn(10)).expect("free"), tables.take(Pfn(11)).expect("free"));
        assert_eq!(tables.take(Pfn(12)), None);
        tables.word(first, 1).store(77, Ordering::Relaxed);
        tables.set_stray(first, true);
        assert_eq!(tables.put(first), Pfn(10));
        let again = tables.take(Pfn(13)).expect("free");
        assert_eq!((again, tables.load(again, 1), tables.is_stray(again)), (first, Pte::EMPTY, false));
        assert_eq!((tables.put(second), tables.put(again)), (Pfn(11), Pfn(13)));
    }

    #[test]
    fn words_belong_to_their_table() {
        let tables = tables(3);
        tables.word(TableId(1), 0).store(5, Ordering::Relaxed);
        assert_eq!(tables.load(TableId(0), 1), Pte::EMPTY);
        assert_eq!(tables.words_of(TableId(1))[0].load(Ordering::Relaxed), 5);
    }
}
