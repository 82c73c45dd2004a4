//! From the root to the word, with tables built where they are missing.

use super::{Attempt, Step};
use crate::counts::Counts;
use crate::error::{FaultError, SpaceError};
use crate::local::Local;
use crate::pte::Pte;
use crate::space::AddressSpace;
use crate::sync::Intent;
use crate::table::{Found, Slot, walk};
use crate::world::World;

impl<W: World> AddressSpace<W> {
    /// The word that decides about the fault's address; or the fault's end, if a huge page could be mapped on the way.
    #[inline]
    pub(super) fn find_word(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
    ) -> Result<Result<(Slot, Pte), Step>, FaultError> {
        let mut tried_huge = false;
        loop {
            let held = self.sync.before_walk(&self.mm, local);
            let engine = self.engine();
            let found = walk(&engine.tables, engine.geometry, self.root(), attempt.va, 0);
            drop(held);
            match found {
                Found::Word(slot, word) => return Ok(Ok((slot, word))),
                Found::Busy => return Ok(Err(Step::Again)),
                Found::NoTable(slot) => {
                    if slot.level == 1 && !tried_huge && self.wants_huge(local, attempt) {
                        if let Some(step) = self.populate_huge(local, attempt, &slot) {
                            return Ok(Err(step));
                        }
                        tried_huge = true;
                    }
                    self.build(local, &slot).map_err(|_| FaultError::OutOfMemory(attempt.va))?;
                }
            }
        }
    }

    /// The word for `va` in a table of `level`; or `Found::Busy`.
    pub(crate) fn walk_or_build(&self, local: &mut Local, va: u64, level: u8) -> Result<Found, SpaceError> {
        loop {
            let engine = self.engine();
            match walk(&engine.tables, engine.geometry, self.root(), va, level) {
                Found::NoTable(slot) => self.build(local, &slot)?,
                found => return Ok(found),
            }
        }
    }

    /// Puts a table into an empty word, or finds that somebody else did.
    #[cold]
    fn build(&self, local: &mut Local, slot: &Slot) -> Result<(), SpaceError> {
        let engine = self.engine();
        let table = engine.take_table_for(local).ok_or(SpaceError::OutOfMemory)?;
        let built = match self.sync.hold(&self.mm, local, slot, Intent::Fill) {
            Err(_) => false,
            Ok(_held) => {
                let word = engine.tables.word(slot.table, slot.index);
                let built = self.sync.replace(word, Pte::EMPTY, Pte::table(table));
                if built {
                    self.account.add(&self.mm, local, Counts::tables(1));
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
