//! How a fault keeps its area as it is (spec §1.5), the axis of "mmap_sem".

use crate::area::Area;
use crate::axis::axis;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

axis! { ($)
    /// How a fault keeps its area from changing.
    Stabilise / AnyStabilise;
    V0 = v0, "nothing: areas must not change while faults run (except with P3)";
    V1 = v1, "the address space's reader-writer lock (mmap_sem)";
    V2 = v2, "a reader-writer lock per area (Linux 6.4)";
    V3 = v3, "speculation: look again before installing (needs a locking strategy, not P2)";
    V7 = v7, "an epoch: writers wait for the faults that began before them";
}

/// An area as a fault found it. Valid until `leave`.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    /// Number of the write that went on, or comes next. Read before the map: if that write is over, the map is its.
    pub(crate) write: u64,
    /// Number of the map it was found in.
    pub(crate) map: u64,
    /// Index in the task's copy of the map.
    pub(crate) index: usize,
    pub(crate) holds: Holds,
}

impl Ticket {
    /// The area of `va` in the map of this moment.
    #[inline]
    fn find<W: World>(mm: &Mm<W>, local: &mut Local, va: u64, holds: Holds) -> Option<Self> {
        let write = mm.write_number();
        let map = mm.refresh(&mut local.areas);
        let index = local.areas.find(va)?;
        Some(Self { write, map, index, holds })
    }

    /// Whether the area is still as it was found: no write has changed it, and none that goes on has closed it.
    #[inline]
    pub(crate) fn is_current<W: World>(&self, mm: &Mm<W>, local: &Local) -> bool {
        let write = mm.write_number();
        mm.map_number() == self.map && !local.areas.area(self.index).is_marked(write)
    }

    /// Gives back what `enter` took, whatever the strategy.
    #[inline]
    pub(crate) fn leave<W: World>(&self, mm: &Mm<W>, local: &Local) {
        match self.holds {
            Holds::Space => mm.end_read(local),
            Holds::Area => {
                let area = local.areas.area(self.index);
                area.lock.end_read(mm.world(), local.cpu, area.line());
            }
            Holds::Section => mm.engine().grace.leave(local.slot),
        }
    }
}

/// What a fault holds of its area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// The address space's lock, as a reader.
    Space,
    /// The area's lock, as a reader.
    Area,
    /// A section of the engine's grace periods.
    Section,
}

/// How `enter` ended.
pub(crate) enum Entered {
    /// With an area.
    Area(Ticket),
    /// The address belongs to no area.
    NoArea,
    /// A writer is changing the area: wait a little and try again.
    Busy,
}

/// One way to keep areas as they are.
pub(crate) trait Stabiliser {
    fn new(tasks: u32) -> Self;

    /// Finds the area of `va` and keeps it.
    fn enter<W: World>(&self, mm: &Mm<W>, local: &mut Local, va: u64) -> Entered;

    /// Makes sure that no fault is in these areas and none gets in before the write ends. The caller is the writer.
    fn close<'a, W: World>(&self, mm: &Mm<W>, local: &mut Local, areas: impl Iterator<Item = &'a Area>);

    /// Whether a fault that has acquired the word checks again that its area is unchanged.
    fn looks_again(&self) -> bool {
        false
    }
}

impl AnyStabilise {
    #[inline]
    pub(crate) fn enter<W: World>(&self, mm: &Mm<W>, local: &mut Local, va: u64) -> Entered {
        each!(self, stabilise => stabilise.enter(mm, local, va))
    }

    pub(crate) fn close<'a, W: World>(
        &self,
        mm: &Mm<W>,
        local: &mut Local,
        areas: impl Iterator<Item = &'a Area>,
    ) {
        each!(self, stabilise => stabilise.close(mm, local, areas));
    }

    #[inline]
    pub(crate) fn looks_again(&self) -> bool {
        each!(self, stabilise => stabilise.looks_again())
    }
}

/// Looks again under the address space's lock: an area that is not in the map may be on its way out, and others may
/// still use its pages. "No area" is an answer only when they are gone.
#[cold]
fn confirm<W: World>(mm: &Mm<W>, local: &mut Local, va: u64) -> Entered {
    local.stats.vma_fallback += 1;
    v1::V1.enter(mm, local, va)
}

/// Closes areas by their marks alone; who looks afterwards sees them.
fn mark<'a, W: World>(mm: &Mm<W>, areas: impl Iterator<Item = &'a Area>) {
    let write = mm.write_number();
    areas.for_each(|area| area.mark(write));
}
