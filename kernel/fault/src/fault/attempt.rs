//! One attempt to handle a fault. At the end of an attempt, the fault changes the page-table word.

use pageset_core::Pfn;

use crate::area::{Access, Prot};
use crate::counts::Counts;
use crate::local::Local;
use crate::pte::{Meaning, Pte};
use crate::space::AddressSpace;
use crate::stabilise::Ticket;
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::World;

/// The page that an access will use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// The page in this frame.
    Frame(Pfn),
    /// The shared page of zeros, which can only be read.
    ZeroPage,
}

/// How an attempt to handle a fault ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The fault is complete, and the access can use this page.
    Done(Backing),
    /// The fault must start again, for example because another task has changed the area or a page-table
    /// word.
    Again,
}

/// The result of a fault's attempt to change a page-table word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Install {
    Done,
    /// Another task has changed the page-table word.
    Lost,
    /// Another task has taken the table out of the tree, or has changed the area.
    Again,
}

/// One attempt to handle a fault: the address, the access, and the area that the fault found.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'t> {
    pub(super) ticket: &'t Ticket,
    pub(super) va: u64,
    pub(super) access: Access,
}

impl<W: World> AddressSpace<W> {
    /// Changes a page-table word from `old` to `new`, if the word is still `old` and its table is still in
    /// the tree. Under V3 and P3, the area must also be unchanged.
    #[inline]
    pub(super) fn install(
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
        // Count the page only after the page's word is in the table (spec §1.4.3).
        if counts != Counts::default() {
            self.account.add(&self.mm, local, counts);
        }
        local.stats.install_ns += self.clock(local) - start_ns;
        Install::Done
    }

    /// Continues a fault after this task or another task has changed the page-table word. If the word now
    /// maps a page and permits the access, the fault is complete. Otherwise the fault starts again.
    pub(super) fn after_loss(&self, attempt: Attempt<'_>, slot: &Slot) -> Step {
        let word = self.engine().tables.load(slot.table, slot.index);
        let is_page = word.meaning(slot.level) == Meaning::Page;
        if is_page && word.permits(attempt.access) {
            Step::Done(self.backing(slot, word, attempt.va))
        } else {
            Step::Again
        }
    }

    /// The page that the word maps at `va`.
    #[inline]
    pub(super) fn backing(&self, slot: &Slot, word: Pte, va: u64) -> Backing {
        if word.is_zero_page() {
            Backing::ZeroPage
        } else if slot.level == 0 {
            Backing::Frame(word.pfn())
        } else {
            let index = self.engine().geometry.index(va, 0);
            Backing::Frame(word.small(index).pfn())
        }
    }

    /// Returns the word with the right to write, if the area allows stores. Otherwise returns `word`.
    pub(super) fn with_rights(&self, local: &Local, ticket: &Ticket, word: Pte) -> Pte {
        if local.areas.area(ticket.index).prot == Prot::ReadWrite { word.writable() } else { word }
    }

    /// The current time in nanoseconds, or 0 if [`World::TIMED`] is `false`.
    #[inline]
    pub(super) fn clock(&self, local: &Local) -> u64 {
        if W::TIMED { self.world().now_ns(local.cpu) } else { 0 }
    }
}
