//! V7: an epoch (spec §1.5.8). Each fault is a section. To begin and to end a section, a task writes only its
//! own cache line. A writer marks the areas that it changes, and then waits until every earlier section has
//! ended. Later faults see the marks, and start again until the write has ended.

use super::{Entered, Holds, Stabiliser, Ticket, confirm, mark};
use crate::area::Area;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) struct V7;

impl Stabiliser for V7 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn enter<W: World>(&self, mm: &Mm<W>, local: &mut Local, va: u64) -> Entered {
        mm.engine().grace.enter(local.slot);
        let found = Ticket::find(mm, local, va, Holds::Section);
        match found {
            Some(ticket) if !local.areas.area(ticket.index).is_marked(ticket.write) => {
                local.stats.vma_fast += 1;
                Entered::Area(ticket)
            }
            _ => {
                mm.engine().grace.leave(local.slot);
                if found.is_none() { confirm(mm, local, va) } else { Entered::Busy }
            }
        }
    }

    fn close<'a, W: World>(&self, mm: &Mm<W>, local: &mut Local, areas: impl Iterator<Item = &'a Area>) {
        mark(mm, areas);
        mm.engine().wait_for_sections(local);
    }
}
