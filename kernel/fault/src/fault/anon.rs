//! Handles faults on an empty page-table word. A store to an address with an empty word maps a cleared page,
//! or several. A load from an address with an empty word maps the page of zeros, which all address spaces
//! share.

use pageset_core::{Order, Pfn};

use super::attempt::{Attempt, Backing, Install, Step};
use crate::counts::Counts;
use crate::error::FaultError;
use crate::local::Local;
use crate::pte::Pte;
use crate::space::AddressSpace;
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::World;

impl<W: World> AddressSpace<W> {
    /// Handles a store to a page with an empty word in the page table.
    #[inline]
    pub(super) fn populate(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
        slot: &Slot,
    ) -> Result<Step, FaultError> {
        if self.options().gang_order > 0
            && let Some(step) = self.populate_gang(local, attempt, slot)
        {
            return Ok(step);
        }
        if self.options().prefault_order > 0 {
            let pages = self.foresee(local, attempt, slot);
            if pages > 1 {
                return self.populate_run(local, attempt, slot, pages);
            }
        }
        let pfn = self.take_clear(local, Order::ZERO, 0).ok_or(FaultError::OutOfMemory(attempt.va))?;
        Ok(self.install_page(local, attempt, slot, (Pte::EMPTY, pfn)))
    }

    /// Maps the frame `pfn` as a small page, if the word is still `old`.
    #[inline]
    pub(super) fn install_page(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
        slot: &Slot,
        (old, pfn): (Pte, Pfn),
    ) -> Step {
        self.begin(pfn, Order::ZERO, 1);
        let new = Pte::anon(pfn).writable();
        match self.install(local, attempt, slot, (old, new), Intent::Fill, Counts::pages(1)) {
            Install::Done => {
                local.stats.installed += 1;
                self.list(local, pfn);
                Step::Done(Backing::Frame(pfn))
            }
            Install::Lost => {
                local.stats.lost_pte += 1;
                self.give_back(local, pfn, 1);
                self.after_loss(attempt, slot)
            }
            Install::Again => {
                self.give_back(local, pfn, 1);
                Step::Again
            }
        }
    }

    /// Handles a load from a page with an empty word in the page table.
    pub(super) fn populate_for_reading(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
        slot: &Slot,
    ) -> Result<Step, FaultError> {
        let words = (Pte::EMPTY, Pte::zero_page());
        Ok(match self.install(local, attempt, slot, words, Intent::Fill, Counts::default()) {
            Install::Done => {
                local.stats.zero_pages += 1;
                Step::Done(Backing::ZeroPage)
            }
            Install::Lost => self.after_loss(attempt, slot),
            Install::Again => Step::Again,
        })
    }
}
