//! Finds the word for a fault's address from the root table on, and builds missing tables.

use super::attempt::{Attempt, Step};
use crate::error::FaultError;
use crate::local::Local;
use crate::pte::Pte;
use crate::space::AddressSpace;
use crate::table::{Found, Slot, walk};
use crate::world::World;

impl<W: World> AddressSpace<W> {
    /// Finds the word for the fault's address. The inner `Err` says how the attempt ended: this function
    /// mapped a huge page, or the fault must start again.
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
                    self.build(local, attempt.va, &slot).map_err(|_| FaultError::OutOfMemory(attempt.va))?;
                }
            }
        }
    }
}
