//! Handles page faults. All strategies take the same steps (spec §1.2). A fault finds the area and the
//! page-table word, and prepares a page while it holds no lock of a page table. If the word has not changed,
//! the fault then puts the page into the word.
//!
//! The module `word` finds the page-table word of the fault's address. `anon` fills an empty word, `cow`
//! handles a store to a page without the right to write, and `restore` brings a reclaimed page back. `huge`,
//! `gang` and `run` map many pages at once. `attempt` changes the word at the end of an attempt, and `frame`
//! allocates the pages. `access` uses a page as a CPU does, and causes the fault if the page table does not
//! permit the access.

mod access;
mod anon;
mod attempt;
mod cow;
mod frame;
mod gang;
mod huge;
mod restore;
mod run;
mod word;

pub use attempt::Backing;

use crate::area::Access;
use crate::counts::Counts;
use crate::error::FaultError;
use crate::local::Local;
use crate::pte::{Meaning, Pte};
use crate::space::AddressSpace;
use crate::stabilise::Entered;
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::World;
use attempt::{Attempt, Install, Step};

impl<W: World> AddressSpace<W> {
    /// Handles a fault of a task.
    #[inline]
    pub(crate) fn fault(&self, local: &mut Local, va: u64, access: Access) -> Result<Backing, FaultError> {
        local.stats.faults += 1;
        self.account.on_fault(&self.mm, local);
        loop {
            let step = match self.stabilise.enter(&self.mm, local, va) {
                Entered::NoArea => return Err(FaultError::NoArea(va)),
                Entered::Busy => Ok(Step::Again),
                Entered::Area(ticket) => {
                    let area = local.areas.area(ticket.index);
                    let step = if area.prot.allows(access) {
                        self.attempt(local, Attempt { ticket: &ticket, va, access })
                    } else if area.is_marked(ticket.write) {
                        // Race: a writer is taking the right to this access away. Until the write ends, other
                        // tasks may still use the right, so an error would come too early. Start the fault
                        // again until the write has ended.
                        Ok(Step::Again)
                    } else {
                        Err(FaultError::NotAllowed(va))
                    };
                    ticket.leave(&self.mm, local);
                    step
                }
            };
            if !local.unmapped.is_empty() {
                self.free_replaced(local);
            }
            match step? {
                Step::Done(backing) => return Ok(backing),
                Step::Again => {
                    local.stats.retries += 1;
                    self.world().relax(local.cpu);
                }
            }
        }
    }

    /// Frees the blocks in `local.unmapped`, such as pages that copies have replaced. The caller holds no
    /// lock and is in no section, because this function waits until no other task uses the blocks.
    #[cold]
    fn free_replaced(&self, local: &mut Local) {
        let mut blocks = core::mem::take(&mut local.unmapped);
        self.free_unmapped(local, &mut blocks);
        local.unmapped = blocks;
    }

    #[inline]
    fn attempt(&self, local: &mut Local, attempt: Attempt<'_>) -> Result<Step, FaultError> {
        let (slot, word) = match self.find_word(local, attempt)? {
            Ok(found) => found,
            Err(step) => return Ok(step),
        };
        match word.meaning(slot.level) {
            Meaning::Empty => match attempt.access {
                Access::Write => self.populate(local, attempt, &slot),
                Access::Read => self.populate_for_reading(local, attempt, &slot),
            },
            Meaning::Page => self.raise(local, attempt, &slot, word),
            Meaning::Reclaimed(place) => self.restore(local, attempt, &slot, (word, place)),
            Meaning::Table(_) | Meaning::Busy => Ok(Step::Again),
        }
    }

    /// Handles a fault on a mapped page. If the page's word already permits the access, does nothing. If the
    /// word does not permit the access, gives the word more rights, or maps a copy of the page.
    fn raise(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
        slot: &Slot,
        word: Pte,
    ) -> Result<Step, FaultError> {
        if word.permits(attempt.access) {
            local.stats.spurious += 1;
            return Ok(Step::Done(self.backing(slot, word, attempt.va)));
        }
        match attempt.access {
            Access::Write => self.copy_on_write(local, attempt, slot, word),
            Access::Read => {
                let visible = word.visible();
                Ok(
                    match self.install(
                        local,
                        attempt,
                        slot,
                        (word, visible),
                        Intent::Replace,
                        Counts::default(),
                    ) {
                        Install::Done => Step::Done(self.backing(slot, visible, attempt.va)),
                        Install::Lost | Install::Again => Step::Again,
                    },
                )
            }
        }
    }
}
