//! V0: nothing keeps an area from changing during a fault (spec §1.5.1). Under V0, the fault's section only
//! prevents the reuse of page tables. With P3, areas may nevertheless change, because a fault under P3 checks
//! its area again under the table's lock.

use super::{Entered, Holds, Stabiliser, Ticket, confirm, mark};
use crate::area::Area;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) struct V0;

impl Stabiliser for V0 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn enter<W: World>(&self, mm: &Mm<W>, local: &mut Local, va: u64) -> Entered {
        mm.engine().grace.enter(local.slot);
        match Ticket::find(mm, local, va, Holds::Section) {
            Some(ticket) => Entered::Area(ticket),
            None => {
                mm.engine().grace.leave(local.slot);
                confirm(mm, local, va)
            }
        }
    }

    fn close<'a, W: World>(&self, mm: &Mm<W>, _: &mut Local, areas: impl Iterator<Item = &'a Area>) {
        mark(mm, areas);
    }
}
