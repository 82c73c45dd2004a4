//! V2: a fault holds the lock of its area as a reader (spec §1.5.3). The fault searches for its area without
//! the address space's lock. If a writer has marked, locked or replaced the area, or if the address belongs
//! to no area, the fault looks for the area again under the address space's lock.

use super::{Entered, Holds, Stabiliser, Ticket, confirm};
use crate::area::Area;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) struct V2;

impl Stabiliser for V2 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn enter<W: World>(&self, mm: &Mm<W>, local: &mut Local, va: u64) -> Entered {
        if let Some(ticket) = Ticket::find(mm, local, va, Holds::Area) {
            let area = local.areas.area(ticket.index);
            if !area.is_marked(ticket.write) && area.lock.try_read(mm.world(), local.cpu, area.line()) {
                // Race: a write replaces the area and ends before this fault gets the area's lock. The area's
                // mark then has the number of an ended write, so the area does not look closed. But the map
                // has a new number, so the fault also compares the number of the map.
                if !area.is_marked(mm.write_number()) && mm.map_number() == ticket.map {
                    local.stats.vma_fast += 1;
                    local.stats.locks.acquired += 1;
                    return Entered::Area(ticket);
                }
                area.lock.end_read(mm.world(), local.cpu, area.line());
            }
        }
        confirm(mm, local, va)
    }

    fn close<'a, W: World>(&self, mm: &Mm<W>, local: &mut Local, areas: impl Iterator<Item = &'a Area>) {
        for area in areas {
            area.lock.write(mm.world(), local.cpu, area.line());
            area.mark(mm.write_number());
            area.lock.end_write(mm.world(), local.cpu, area.line());
        }
    }
}
