//! Ends an address space: frees its pages and tables.

use alloc::vec::Vec;

use pageset_core::CpuId;

use super::AddressSpace;
use crate::atomic::Ordering;
use crate::counts::Counts;
use crate::local::Local;
use crate::pte::{Meaning, Pte, TableId};
use crate::world::World;

impl<W: World> AddressSpace<W> {
    /// Frees every page and table. Call this function only when no task uses the address space any more.
    fn tear_down(&self) {
        let mut local = Local::new(CpuId(self.last_cpu.load(Ordering::Relaxed)), 0, self.id());
        let mut tables = Vec::new();
        let pages =
            self.take_apart(&mut local, self.root(), self.engine().geometry.root_level(), &mut tables);
        // The address space's count of tables does not include the root.
        let found = Counts { tables: tables.len() as i64 - 1, ..Counts::pages(pages) };
        debug_assert_eq!(self.counts(), found, "address space {} has wrong counts at its end", self.id());
        self.engine().free_tables(&mut local, &mut tables);
    }

    /// Empties a table and the tables below it, and appends these tables to `tables`. Returns the number of
    /// small pages that these tables mapped.
    fn take_apart(&self, local: &mut Local, table: TableId, level: u8, tables: &mut Vec<TableId>) -> i64 {
        let (mut pages, mut blocks) = (0, Vec::new());
        for word in self.engine().tables.words_of(table) {
            let old = Pte::from_bits(word.swap(0, Ordering::AcqRel));
            match old.meaning(level) {
                Meaning::Table(below) => pages += self.take_apart(local, below, level - 1, tables),
                Meaning::Page | Meaning::Reclaimed(_) => {
                    let words = self.drop_page(local, old, &mut blocks);
                    pages += words * self.engine().geometry.pages_per_word(level);
                }
                Meaning::Empty | Meaning::Busy => {}
            }
        }
        tables.push(table);
        self.engine().free_blocks(local, &mut blocks);
        pages
    }
}

impl<W: World> Drop for AddressSpace<W> {
    fn drop(&mut self) {
        self.tear_down();
    }
}
