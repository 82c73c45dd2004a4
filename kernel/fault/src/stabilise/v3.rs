//! V3: speculation (spec §1.5.4). To find its area, a fault writes to no shared cache line, unless the area
//! map has changed or the area is closed. Race: a writer unmaps the area while a fault maps a page into the
//! area. The writer first marks the area, and then takes each table's lock to remove pages. The fault checks
//! the mark while it holds the table's lock. So either the fault sees the mark and starts again, or the
//! writer takes the lock later and removes the fault's page. A fault that finds its area marked looks for the
//! area again under the address space's lock.

use super::{Entered, Holds, Stabiliser, Ticket, confirm, mark};
use crate::area::Area;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) struct V3;

impl Stabiliser for V3 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn enter<W: World>(&self, mm: &Mm<W>, local: &mut Local, va: u64) -> Entered {
        mm.engine().grace.enter(local.slot);
        if let Some(ticket) = Ticket::find(mm, local, va, Holds::Section)
            && !local.areas.area(ticket.index).is_marked(ticket.write)
        {
            local.stats.vma_fast += 1;
            return Entered::Area(ticket);
        }
        mm.engine().grace.leave(local.slot);
        confirm(mm, local, va)
    }

    fn close<'a, W: World>(&self, mm: &Mm<W>, _: &mut Local, areas: impl Iterator<Item = &'a Area>) {
        mark(mm, areas);
    }

    fn looks_again(&self) -> bool {
        true
    }
}
