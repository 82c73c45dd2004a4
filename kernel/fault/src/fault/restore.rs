//! Handles faults on reclaimed pages.

use pageset_core::Order;

use super::attempt::{Attempt, Backing, Step};
use crate::area::Access;
use crate::atomic::Ordering;
use crate::counts::Counts;
use crate::error::FaultError;
use crate::local::Local;
use crate::pte::Pte;
use crate::space::AddressSpace;
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::{Memory, World};

impl<W: World> AddressSpace<W> {
    /// Brings back the page whose contents the host keeps in slot `place`. Race: another task restores and
    /// changes the page, and the page is reclaimed again into the same slot. The page's word then looks
    /// unchanged, although the contents are new. So a task restores the contents only while the task has the
    /// right to change the word.
    pub(super) fn restore(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
        slot: &Slot,
        (old, place): (Pte, u64),
    ) -> Result<Step, FaultError> {
        let pfn = self.take_block(local, Order::ZERO).ok_or(FaultError::OutOfMemory(attempt.va))?;
        self.begin(pfn, Order::ZERO, 1);
        let mut restored = false;
        if let Ok(_held) = self.sync.hold(&self.mm, local, slot, Intent::Replace) {
            let word = self.engine().tables.word(slot.table, slot.index);
            if self.is_unchanged(local, attempt.ticket) && word.load(Ordering::Acquire) == old.bits() {
                self.world().memory().restore(local.cpu, place, pfn);
                let page = Pte::anon(pfn);
                let page = match attempt.access {
                    Access::Write => page.writable(),
                    Access::Read => self.with_rights(local, attempt.ticket, page),
                };
                restored = self.sync.replace(word, old, page);
                if restored {
                    self.account.add(&self.mm, local, Counts::pages(1));
                }
            }
        }
        if !restored {
            self.give_back(local, pfn, 1);
            return Ok(self.after_loss(attempt, slot));
        }
        self.world().memory().drop_slot(place);
        local.stats.restored += 1;
        self.list(local, pfn);
        Ok(Step::Done(Backing::Frame(pfn)))
    }
}
