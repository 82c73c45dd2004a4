//! Handles faults that map a run of several pages (prefaulting, spec §1.9). The run begins with the page that
//! the task touched.

use pageset_core::{Order, Pfn};

use super::attempt::{Attempt, Step};
use crate::counts::Counts;
use crate::error::FaultError;
use crate::local::Local;
use crate::prefault::ORDER_MAX;
use crate::pte::Pte;
use crate::space::AddressSpace;
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::World;

impl<W: World> AddressSpace<W> {
    /// The number of pages that this fault maps, including the page that the task touched. A run of pages
    /// does not reach beyond the area or the leaf table.
    pub(super) fn foresee(&self, local: &mut Local, attempt: Attempt<'_>, slot: &Slot) -> u32 {
        let geometry = self.engine().geometry;
        let page = geometry.page_start(attempt.va);
        let in_area = (local.areas.area(attempt.ticket.index).range.end - page) >> geometry.page_shift();
        let in_table = geometry.entries() - slot.index;
        let room = in_table.min(u32::try_from(in_area).unwrap_or(u32::MAX));
        local.prefault.foresee(geometry, page, self.options().prefault_order, room)
    }

    /// Maps a run of pages. If memory is short, maps a shorter run, because the task needs only the first
    /// page.
    pub(super) fn populate_run(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
        slot: &Slot,
        pages: u32,
    ) -> Result<Step, FaultError> {
        let mut taken = [Pfn(0); 1 << ORDER_MAX];
        let mut count = 0;
        while count < pages as usize
            && let Some(pfn) = self.take_clear(local, Order::ZERO, 0)
        {
            self.begin(pfn, Order::ZERO, 1);
            taken[count] = pfn;
            count += 1;
        }
        if count == 0 {
            return Err(FaultError::OutOfMemory(attempt.va));
        }
        let mut mapped = [false; 1 << ORDER_MAX];
        if let Ok(_held) = self.sync.hold(&self.mm, local, slot, Intent::Fill)
            && self.is_unchanged(local, attempt.ticket)
        {
            for (index, pfn) in taken[..count].iter().enumerate() {
                let word = self.engine().tables.word(slot.table, slot.index + index as u32);
                let page = Pte::anon(*pfn).writable();
                let page = if index == 0 { page } else { page.prefaulted() };
                mapped[index] = self.sync.replace(word, Pte::EMPTY, page);
            }
            let installed = mapped.iter().filter(|mapped| **mapped).count();
            self.account.add(&self.mm, local, Counts::pages(installed as i64));
        }
        for (index, pfn) in taken[..count].iter().enumerate() {
            if mapped[index] {
                local.stats.installed += 1;
                local.stats.prefault_extra += u64::from(index > 0);
                self.list(local, *pfn);
            } else {
                local.stats.prefault_lost += u64::from(index > 0);
                local.stats.lost_pte += u64::from(index == 0);
                self.give_back(local, *pfn, 1);
            }
        }
        Ok(self.after_loss(attempt, slot))
    }
}
