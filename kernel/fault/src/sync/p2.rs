//! P2: compare-exchange of the word (spec §1.4.3). Populating a word and adding a table need no lock. Before
//! a table leaves the tree it is closed: each of its words is poisoned. Replacing a page takes the lock over
//! the page table.

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

    /// Race: two tasks change the same word. The winner's Release publishes its page's contents (E1, E2). The
    /// loser goes on with the winner's page, hence Acquire on failure.
    #[inline]
    fn replace(&self, word: &AtomicU64, old: Pte, new: Pte) -> bool {
        word.compare_exchange(old.bits(), new.bits(), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
