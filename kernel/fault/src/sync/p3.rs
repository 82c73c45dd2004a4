//! P3: transactions on tables, after CortenMM's advanced protocol (spec §1.4.5). A change descends without
//! locks and locks the table that covers it. It starts again if that table was taken out of the tree.
//!
//! CortenMM keeps a range's rights in the page table and has no areas. Here rights stay in the area map, and
//! a fault checks its area again under the table's lock. The cache lines written are the same, and none is
//! shared by all CPUs (decision 0008).

use super::{Intent, PteSync, Stale};
use crate::held::Held;
use crate::local::Local;
use crate::mm::Mm;
use crate::table::Slot;
use crate::world::World;

pub(crate) struct P3;

impl PteSync for P3 {
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
        let held = self.hold_below(mm, local, slot);
        if mm.engine().tables.is_stray(slot.table) { Err(Stale) } else { Ok(held) }
    }

    #[inline]
    fn hold_below<'a, W: World>(&self, mm: &'a Mm<W>, local: &mut Local, slot: &Slot) -> Held<'a, W> {
        mm.lock_table(local, slot.table)
    }

    fn looks_again(&self) -> bool {
        true
    }
}
