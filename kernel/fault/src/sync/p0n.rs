//! P0n: one lock over the whole page table as under P0, but a fault takes the lock only once, to map the page
//! (spec §1.4.1). Under P0n, a fault walks to its word and reads the word without a lock. Source: the first
//! half of Hugh Dickins' patches of 2005.

use super::p0::hold_whole_table;
use super::{Intent, PteSync, Stale};
use crate::held::Held;
use crate::local::Local;
use crate::mm::Mm;
use crate::table::Slot;
use crate::world::World;

pub(crate) struct P0n;

impl PteSync for P0n {
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
        hold_whole_table(mm, local, slot)
    }
}
