//! V1: the read side of one reader-writer lock, as in 2005 (spec §1.5.2). Two atomic operations on one line per fault.

use super::{Entered, Holds, Stabiliser, find};
use crate::area::Area;
use crate::space::AddressSpace;
use crate::local::Local;
use crate::world::World;

pub(crate) struct V1;

impl Stabiliser for V1 {
    fn new(_: u32) -> Self {
        Self
    }

    #[inline]
    fn enter<W: World>(&self, space: &AddressSpace<W>, local: &mut Local, va: u64) -> Entered {
        let line = space.mmap_line();
        space.mmap_lock.0.read(space.world(), local.cpu, line, &mut local.stats.locks);
        match find(space, local, va, Holds::Space) {
            Some(ticket) => Entered::Area(ticket),
            None => {
                space.mmap_lock.0.end_read(space.world(), local.cpu, line);
                Entered::NoArea
            }
        }
    }

    /// The writer has the lock, so nobody is inside.
    fn close<'a, W: World>(&self, _: &AddressSpace<W>, _: &mut Local, _: impl Iterator<Item = &'a Area>) {}
}
