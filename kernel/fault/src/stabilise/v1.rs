//! V1: a fault holds mmap_sem as a reader, as in 2005 (spec §1.5.2). Each attempt of a fault makes two atomic
//! operations on the cache line of mmap_sem, or more if a writer holds mmap_sem or waits for it.

use super::{Entered, Holds, Stabiliser, Ticket};
use crate::area::Area;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) struct V1;

impl Stabiliser for V1 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn enter<W: World>(&self, mm: &Mm<W>, local: &mut Local, va: u64) -> Entered {
        mm.read(local);
        match Ticket::find(mm, local, va, Holds::Space) {
            Some(ticket) => Entered::Area(ticket),
            None => {
                mm.end_read(local);
                Entered::NoArea
            }
        }
    }

    /// Does nothing. The writer already holds mmap_sem, so no fault runs in the address space.
    fn close<'a, W: World>(&self, _: &Mm<W>, _: &mut Local, _: impl Iterator<Item = &'a Area>) {}
}
