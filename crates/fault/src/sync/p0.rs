//! P0: one lock over the whole page table, as Linux 2.6.13 had it (spec §1.4.1). A fault takes it twice: to walk and
//! read, and, with the page ready, to look again and install.

use super::{Held, Intent, PteSync, Stale, lock};
use crate::space::AddressSpace;
use crate::table::Slot;
use crate::local::Local;
use crate::world::World;

pub(crate) struct P0;

impl PteSync for P0 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn before_walk<'a, W: World>(&self, space: &'a AddressSpace<W>, local: &mut Local) -> Held<'a, W> {
        whole_table(space, local)
    }

    #[inline]
    fn hold<'a, W: World>(
        &self,
        space: &'a AddressSpace<W>,
        local: &mut Local,
        slot: &Slot,
        _: Intent,
    ) -> Result<Held<'a, W>, Stale> {
        hold_whole_table(space, local, slot)
    }
}

/// Takes the lock over the page table.
#[inline]
pub(super) fn whole_table<'a, W: World>(space: &'a AddressSpace<W>, local: &mut Local) -> Held<'a, W> {
    lock(space.world(), local.cpu, &mut local.stats.locks, &space.page_table_lock.0)
}

/// Takes the lock over the page table, and makes sure that the word's table is still a part of it.
#[inline]
pub(super) fn hold_whole_table<'a, W: World>(
    space: &'a AddressSpace<W>,
    local: &mut Local,
    slot: &Slot,
) -> Result<Held<'a, W>, Stale> {
    let held = whole_table(space, local);
    if space.engine().tables.is_stray(slot.table) { Err(Stale) } else { Ok(held) }
}
