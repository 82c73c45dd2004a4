//! P2: a task changes a page-table word by compare-exchange (spec §1.4.3). Under P2, a fault needs no lock to
//! fill a word or to add a table. For most changes of a word that are no fill, a task under P2 takes the lock
//! over the page table. Before a collapse takes a table out of the tree, it exchanges each word of the table
//! for poison. Later compare-exchanges in the poisoned table fail.

use super::{Intent, PteSync, Stale};
use crate::atomic::{AtomicU64, Ordering};
use crate::held::Held;
use crate::local::Local;
use crate::mm::Mm;
use crate::pte::Pte;
use crate::table::Slot;
use crate::world::{Line, World};

pub(crate) struct P2;

impl PteSync for P2 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn hold<'a, W: World>(
        &self,
        mm: &'a Mm<W>,
        local: &mut Local,
        slot: &Slot,
        intent: Intent,
    ) -> Result<Held<'a, W>, Stale> {
        let held = match intent {
            Intent::Fill => Held::Nothing,
            Intent::Replace => mm.lock_page_table(local),
        };
        mm.world().shares(local.cpu, Line::Words { table: slot.table.0, line: slot.index / 8 });
        Ok(held)
    }

    /// Race: two tasks change the same word, and only one compare-exchange succeeds. The successful
    /// compare-exchange has `Release` ordering, so that other tasks see the contents of the new page (E1,
    /// E2). The compare-exchange that fails has `Acquire` ordering, because its task then uses the page of
    /// the other task.
    #[inline]
    fn replace(&self, word: &AtomicU64, old: Pte, new: Pte) -> bool {
        word.compare_exchange(old.bits(), new.bits(), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
