//! P0: one lock over the whole page table, as in Linux 2.6.13 (spec §1.4.1). A fault takes the lock twice:
//! first to walk to its word and read the word, and later to check the word and map the page.

use super::{Intent, PteSync, Stale};
use crate::held::Held;
use crate::local::Local;
use crate::mm::Mm;
use crate::table::Slot;
use crate::world::World;

pub(crate) struct P0;

impl PteSync for P0 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn before_walk<'a, W: World>(&self, mm: &'a Mm<W>, local: &mut Local) -> Held<'a, W> {
        mm.lock_page_table(local)
    }

    #[inline]
    fn hold<'a, W: World>(
        &self,
        mm: &'a Mm<W>,
        local: &mut Local,
        slot: &Slot,
        _: Intent,
    ) -> Result<Held<'a, W>, Stale> {
        hold_whole_table(mm, local, slot)
    }
}

/// Takes the lock over the page table, and checks that the word's table is still in the tree.
#[inline]
pub(super) fn hold_whole_table<'a, W: World>(
    mm: &'a Mm<W>,
    local: &mut Local,
    slot: &Slot,
) -> Result<Held<'a, W>, Stale> {
    let held = mm.lock_page_table(local);
    if mm.engine().tables.is_stray(slot.table) { Err(Stale) } else { Ok(held) }
}
