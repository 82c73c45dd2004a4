//! Builds missing page tables. A fault or a fork needs the table of a word before it can fill the word.

use super::AddressSpace;
use crate::counts::Counts;
use crate::error::SpaceError;
use crate::local::Local;
use crate::pte::Pte;
use crate::sync::Intent;
use crate::table::{Found, Slot, walk};
use crate::world::World;

impl<W: World> AddressSpace<W> {
    /// Finds the word for `va` in a table of level `level`, and builds missing tables. Returns
    /// [`Found::Busy`] if another task is changing a word between the root and this table.
    pub(super) fn walk_or_build(&self, local: &mut Local, va: u64, level: u8) -> Result<Found, SpaceError> {
        loop {
            let engine = self.engine();
            match walk(&engine.tables, engine.geometry, self.root(), va, level) {
                Found::NoTable(slot) => self.build(local, va, &slot)?,
                found => return Ok(found),
            }
        }
    }

    /// Puts a new table for `va` into an empty word. Race: another task puts its own table into the same word
    /// first. The task that loses this race frees its own table, and the caller's next walk finds the other
    /// task's table.
    #[cold]
    pub(crate) fn build(&self, local: &mut Local, va: u64, slot: &Slot) -> Result<(), SpaceError> {
        let engine = self.engine();
        let table = engine.take_table_for(local).ok_or(SpaceError::OutOfMemory)?;
        let built = match self.sync.hold(&self.mm, local, slot, Intent::Fill) {
            Err(_) => false,
            Ok(_held) => {
                let word = engine.tables.word(slot.table, slot.index);
                let built = self.sync.replace(word, Pte::EMPTY, Pte::table(table));
                if built {
                    self.account.add(&self.mm, local, Counts::tables(1));
                    if slot.level == 1 {
                        let start = engine.geometry.span_around(va, 0).start;
                        let words = engine.tables.words_of(table).as_ptr();
                        self.world().link_leaf(local.cpu, self.id(), start, words);
                    }
                }
                built
            }
        };
        if built {
            local.stats.tables_alloc += 1;
        } else {
            local.stats.lost_table += 1;
            engine.free_tables(local, &mut alloc::vec![table]);
        }
        Ok(())
    }
}
