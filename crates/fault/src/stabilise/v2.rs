//! V2: a lock per area, found without the address space's lock (spec §1.5.3). An area that a writer has marked, or an
//! address without an area, is looked at again under the address space's lock.

use super::{Entered, Holds, Stabiliser, confirm, find};
use crate::area::Area;
use crate::space::AddressSpace;
use crate::local::Local;
use crate::world::{Line, World};

pub(crate) struct V2;

pub(super) fn line(area: &Area) -> Line {
    Line::AreaLock { area: area.id }
}

impl Stabiliser for V2 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn enter<W: World>(&self, space: &AddressSpace<W>, local: &mut Local, va: u64) -> Entered {
        if let Some(ticket) = find(space, local, va, Holds::Area) {
            let area = local.areas.area(ticket.index);
            if !area.is_marked(ticket.write) && area.lock.try_read(space.world(), local.cpu, line(area)) {
                // A mark stays on an area that was replaced, so the map is compared as well.
                if !area.is_marked(space.write_number()) && space.map_number() == ticket.map {
                    local.stats.vma_fast += 1;
                    local.stats.locks.acquired += 1;
                    return Entered::Area(ticket);
                }
                area.lock.end_read(space.world(), local.cpu, line(area));
            }
        }
        confirm(space, local, va)
    }

    fn close<'a, W: World>(
        &self,
        space: &AddressSpace<W>,
        local: &mut Local,
        areas: impl Iterator<Item = &'a Area>,
    ) {
        for area in areas {
            area.lock.write(space.world(), local.cpu, line(area));
            area.mark(space.write_number());
            area.lock.end_write(space.world(), local.cpu, line(area));
        }
    }
}
