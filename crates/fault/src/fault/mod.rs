//! Page faults, after the skeleton that all strategies share (spec §1.2): find the area, find the word, prepare a page
//! without any lock, put it into the word if that is still as it was.
//!
//! `word` (from the root to it), `anon` (an empty word), `cow` (a page that may not be written yet), `restore`
//! (a reclaimed page), `huge`, `gang` and `run` (many pages at once), `frame` (where pages come from).

mod access;
mod anon;
mod cow;
mod frame;
mod gang;
mod huge;
mod restore;
mod run;
mod word;

use pageset_core::Pfn;

use crate::area::{Access, Prot};
use crate::counts::Counts;
use crate::error::FaultError;
use crate::local::Local;
use crate::pte::{Meaning, Pte};
use crate::space::AddressSpace;
use crate::stabilise::{Entered, Ticket};
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::World;

/// What an access finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// This frame.
    Frame(Pfn),
    /// The shared page of zeros; loads only.
    ZeroPage,
}

/// How far one attempt got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The access can go on with this page.
    Done(Backing),
    /// Something changed meanwhile, or is changing: from the beginning.
    Again,
}

/// What became of a word that was to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Install {
    Done,
    /// The word is not what it was.
    Lost,
    /// The table or the area is not what it was.
    Again,
}

/// One attempt at a fault: who, where, and in which area.
#[derive(Clone, Copy)]
struct Attempt<'t> {
    ticket: &'t Ticket,
    va: u64,
    access: Access,
}

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
                        // The right is being taken away, and others may still use it: not an answer yet.
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

    /// Frees what copying replaced, outside of everything that others may wait for.
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

    /// A page is there: does it allow the access, or can it be made to?
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

    /// Puts `new` into a word that holds `old`, with everything that must hold at that moment.
    #[inline]
    fn install(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
        slot: &Slot,
        (old, new): (Pte, Pte),
        intent: Intent,
        counts: Counts,
    ) -> Install {
        let start_ns = self.clock(local);
        let Ok(_held) = self.sync.hold(&self.mm, local, slot, intent) else { return Install::Again };
        if !self.is_unchanged(local, attempt.ticket) {
            return Install::Again;
        }
        if !self.sync.replace(self.engine().tables.word(slot.table, slot.index), old, new) {
            return Install::Lost;
        }
        // Only now: a page that others can see may be taken away again at once (spec §1.4.3).
        if counts != Counts::default() {
            self.account.add(&self.mm, local, counts);
        }
        local.stats.install_ns += self.clock(local) - start_ns;
        Install::Done
    }

    /// After a word was lost: if what is there does, the fault is complete, since somebody else completed it.
    fn after_loss(&self, attempt: Attempt<'_>, slot: &Slot) -> Step {
        let word = self.engine().tables.load(slot.table, slot.index);
        let is_page = word.meaning(slot.level) == Meaning::Page;
        if is_page && word.permits(attempt.access) {
            Step::Done(self.backing(slot, word, attempt.va))
        } else {
            Step::Again
        }
    }

    /// The page of a word that serves `va`.
    #[inline]
    fn backing(&self, slot: &Slot, word: Pte, va: u64) -> Backing {
        if word.is_zero_page() {
            Backing::ZeroPage
        } else if slot.level == 0 {
            Backing::Frame(word.pfn())
        } else {
            let index = self.engine().geometry.index(va, 0);
            Backing::Frame(word.small(index).pfn())
        }
    }

    /// The area's rights, as bits of a word.
    fn with_rights(&self, local: &Local, ticket: &Ticket, word: Pte) -> Pte {
        if local.areas.area(ticket.index).prot == Prot::ReadWrite { word.writable() } else { word }
    }

    /// The time, if the world is timed.
    #[inline]
    fn clock(&self, local: &Local) -> u64 {
        if W::TIMED { self.world().now_ns(local.cpu) } else { 0 }
    }
}
