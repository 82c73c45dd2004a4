//! Handles faults that map a huge page: one word of level 1 maps a block as large as the range of a leaf
//! table.

use super::attempt::{Attempt, Install, Step};
use crate::area::Access;
use crate::counts::Counts;
use crate::local::Local;
use crate::pte::Pte;
use crate::space::{AddressSpace, Huge};
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::World;

impl<W: World> AddressSpace<W> {
    /// Whether the fault may map a huge page if the huge page's range is empty.
    pub(super) fn wants_huge(&self, local: &Local, attempt: Attempt<'_>) -> bool {
        let geometry = self.engine().geometry;
        let (span, area) = (geometry.span_around(attempt.va, 0), local.areas.area(attempt.ticket.index));
        self.options().huge == Huge::Always
            && attempt.access == Access::Write
            && geometry.huge_order().is_some()
            && area.range.start <= span.start
            && span.end <= area.range.end
    }

    /// Maps a huge page into an empty word of level 1. Returns `None` if a huge page is larger than the
    /// largest block, if no block is free, or if another task has filled the word. After `None`, the caller
    /// maps small pages.
    #[cold]
    pub(super) fn populate_huge(&self, local: &mut Local, attempt: Attempt<'_>, slot: &Slot) -> Option<Step> {
        let geometry = self.engine().geometry;
        let order = geometry.huge_order()?;
        let Some(block) = self.take_clear(local, order, geometry.index(attempt.va, 0)) else {
            local.stats.huge_fallback += 1;
            return None;
        };
        self.begin(block, order, 1);
        let huge = Pte::anon(block).huge().writable();
        let pages = geometry.pages_per_word(1);
        let words = (Pte::EMPTY, huge);
        match self.install(local, attempt, slot, words, Intent::Fill, Counts::pages(pages)) {
            Install::Done => {
                local.stats.installed += pages as u64;
                local.stats.huge += 1;
                self.list(local, block);
                Some(Step::Done(self.backing(slot, huge, attempt.va)))
            }
            Install::Lost => {
                local.stats.huge_fallback += 1;
                self.give_back(local, block, 1);
                None
            }
            Install::Again => {
                self.give_back(local, block, 1);
                Some(Step::Again)
            }
        }
    }
}
