//! P3: one lock per table, after CortenMM's advanced protocol (spec §1.4.5). A task walks to its word without
//! locks, and then locks the word's table. If the table was taken out of the tree, the task starts again.
//!
//! CortenMM keeps access rights in the page table and has no areas. In this crate, the rights stay in the
//! area map, and a fault checks its area again under the table's lock. A fault under P3 writes the same cache
//! lines as a fault in CortenMM, and no cache line that all CPUs write (decision 0008).

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
