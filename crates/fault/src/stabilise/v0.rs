//! V0: nothing (spec §1.5.1). The section only keeps tables from being recycled under the fault. With P3 that is
//! enough for everything, since P3 looks again under the table's lock.

use super::{Entered, Holds, Stabiliser, confirm, find, mark};
use crate::area::Area;
use crate::space::AddressSpace;
use crate::local::Local;
use crate::world::World;

pub(crate) struct V0;

impl Stabiliser for V0 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn enter<W: World>(&self, space: &AddressSpace<W>, local: &mut Local, va: u64) -> Entered {
        space.engine().grace.enter(local.slot);
        match find(space, local, va, Holds::Section) {
            Some(ticket) => Entered::Area(ticket),
            None => {
                space.engine().grace.leave(local.slot);
                confirm(space, local, va)
            }
        }
    }

    fn close<'a, W: World>(
        &self,
        space: &AddressSpace<W>,
        _: &mut Local,
        areas: impl Iterator<Item = &'a Area>,
    ) {
        mark(space, areas);
    }
}
