//! Handles gang faults. A gang fault maps one block of several pages into adjacent page-table words, as Linux
//! does with mTHP (spec §1.9).

use core::ops::Range;

use pageset_core::Order;

use super::attempt::{Attempt, Backing, Step};
use crate::counts::Counts;
use crate::local::Local;
use crate::pte::Pte;
use crate::space::AddressSpace;
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::World;

impl<W: World> AddressSpace<W> {
    /// Maps the largest free block that fits into the area and needs only words that are empty. The block has
    /// order 1 to `gang_order` of the options. Returns `None` if no such block exists. After `None`, the
    /// caller maps pages without a gang.
    #[cold]
    pub(super) fn populate_gang(&self, local: &mut Local, attempt: Attempt<'_>, slot: &Slot) -> Option<Step> {
        let geometry = self.engine().geometry;
        let largest = self.options().gang_order.min(geometry.index_bits());
        let orders = (1..=largest).rev().filter_map(Order::new);
        for order in orders {
            let bytes = geometry.page_bytes() << order.get();
            let start = attempt.va & !(bytes - 1);
            let area = &local.areas.area(attempt.ticket.index).range;
            let first = slot.index & !(order.frames() - 1);
            let words = first..first + order.frames();
            let fits = area.start <= start && start + bytes <= area.end;
            if !fits || !self.are_empty(slot, words.clone()) {
                continue;
            }
            if let Some(block) = self.take_clear(local, order, slot.index - first) {
                return Some(self.install_gang(local, attempt, slot, words, (block, order)));
            }
        }
        None
    }

    fn are_empty(&self, slot: &Slot, mut words: Range<u32>) -> bool {
        words.all(|index| self.engine().tables.load(slot.table, index) == Pte::EMPTY)
    }

    /// Maps the block into all words or into no word, except under P2. Race: under P2 (no lock), another
    /// task's fault may fill some of the page-table words first. So under P2, this fault maps the block only
    /// into the words that are still empty.
    fn install_gang(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
        slot: &Slot,
        words: Range<u32>,
        (block, order): (pageset_core::Pfn, Order),
    ) -> Step {
        self.begin(block, order, order.frames());
        let mut installed = 0;
        if let Ok(_held) = self.sync.hold(&self.mm, local, slot, Intent::Fill)
            && self.is_unchanged(local, attempt.ticket)
            && self.are_empty(slot, words.clone())
        {
            for (part, index) in (0..).zip(words) {
                let word = self.engine().tables.word(slot.table, index);
                let new = Pte::anon(block).small(part).writable();
                installed += u32::from(self.sync.replace(word, Pte::EMPTY, new));
            }
            if installed > 0 {
                self.account.add(&self.mm, local, Counts::pages(i64::from(installed)));
            }
        }
        local.stats.lost_pte += u64::from(order.frames() - installed);
        if installed == 0 {
            self.give_back(local, block, order.frames());
            return Step::Again;
        }
        let unused = order.frames() - installed;
        if unused > 0 {
            local.unmapped.extend(self.engine().frames.put(block, unused));
        }
        local.stats.installed += u64::from(installed);
        local.stats.gangs += 1;
        self.list(local, block);
        match self.after_loss(attempt, slot) {
            Step::Done(Backing::Frame(pfn)) => Step::Done(Backing::Frame(pfn)),
            _ => Step::Again,
        }
    }
}
