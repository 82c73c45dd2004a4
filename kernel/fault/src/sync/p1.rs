//! P1: one lock per leaf table (spec §1.4.2). The lock over the page table protects only the tables of higher
//! levels.

use super::p0::hold_whole_table;
use super::{Intent, PteSync, Stale};
use crate::held::Held;
use crate::local::Local;
use crate::mm::Mm;
use crate::pte::Pte;
use crate::table::Slot;
use crate::world::World;

pub(crate) struct P1;

impl PteSync for P1 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn hold<'a, W: World>(
        &self,
        mm: &'a Mm<W>,
        local: &mut Local,
        slot: &Slot,
        _: Intent,
    ) -> Result<Held<'a, W>, Stale> {
        let Some((parent, index)) = slot.parent.filter(|_| slot.level == 0) else {
            return hold_whole_table(mm, local, slot);
        };
        let held = self.hold_below(mm, local, slot);
        // With the lock held, check that the parent word still leads to this table.
        if mm.engine().tables.load(parent, index) == Pte::table(slot.table) { Ok(held) } else { Err(Stale) }
    }

    #[inline]
    fn hold_below<'a, W: World>(&self, mm: &'a Mm<W>, local: &mut Local, slot: &Slot) -> Held<'a, W> {
        if slot.level > 0 {
            // The caller holds the page-table lock, which covers the words of all upper tables.
            return Held::Nothing;
        }
        mm.lock_table(local, slot.table)
    }
}
