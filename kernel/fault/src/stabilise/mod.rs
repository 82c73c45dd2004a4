//! Part V of a strategy: how a fault keeps its area from changing (spec §1.5).

use crate::area::Area;
use crate::axis::axis;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

axis! { ($)
    /// How a fault keeps its area from changing.
    Stabilise / AnyStabilise;
    V0 = v0, "no protection: areas must not change while faults run (except with P3)";
    V1 = v1, "mmap_sem: one reader-writer lock over all areas";
    V2 = v2, "a reader-writer lock for each area (Linux 6.4)";
    V3 = v3, "speculation: no lock, but the fault checks its area again before it maps the page (not with P2)";
    V7 = v7, "an epoch: a writer waits until the faults that began before it have ended";
}

/// The area that a fault has found. The ticket is valid until the fault calls `leave`.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    /// The number of the current or next write (`map`, `unmap` and the like). Race: a write ends while this
    /// fault begins. The fault reads the number of the write, and after that it reads the area map. So the
    /// area map already has the changes of every write with a smaller number.
    pub(crate) write: u64,
    /// The number of the area map that contains the area.
    pub(crate) map: u64,
    /// The index of the area in the area map that the task refers to.
    pub(crate) index: usize,
    pub(crate) holds: Holds,
}

impl Ticket {
    /// Finds the area of `va` in the current area map.
    #[inline]
    fn find<W: World>(mm: &Mm<W>, local: &mut Local, va: u64, holds: Holds) -> Option<Self> {
        let write = mm.write_number();
        let map = mm.refresh(&mut local.areas);
        let index = local.areas.find(va)?;
        Some(Self { write, map, index, holds })
    }

    /// Whether the ticket's area is unchanged: no write has replaced the area map, and no write in progress
    /// has closed the area.
    #[inline]
    pub(crate) fn is_current<W: World>(&self, mm: &Mm<W>, local: &Local) -> bool {
        let write = mm.write_number();
        mm.map_number() == self.map && !local.areas.area(self.index).is_marked(write)
    }

    /// Ends this fault's use of the area, so that writers may change the area.
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

/// The lock or section that a fault holds until `leave`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// The fault holds the address space's lock (mmap_sem) as a reader.
    Space,
    /// The fault holds the area's own lock as a reader.
    Area,
    /// The fault is in a section, and a writer's grace period waits for the end of the section.
    Section,
}

/// The result of [`Stabiliser::enter`].
pub(crate) enum Entered {
    /// The fault has found the area. Under V0 and V3 the area may still change. Under V1, V2 and V7, no
    /// writer changes the area before `leave`.
    Area(Ticket),
    /// The address belongs to no area.
    NoArea,
    /// A writer has closed the area. The fault must wait a little and try again.
    Busy,
}

/// A value of part V of a strategy prevents changes of areas during a fault, or marks changed areas.
pub(crate) trait Stabiliser {
    fn new(tasks: u32) -> Self;

    /// Finds the area of `va`. Also takes the strategy's lock or begins a section, which the fault keeps
    /// until `leave`.
    fn enter<W: World>(&self, mm: &Mm<W>, local: &mut Local, va: u64) -> Entered;

    /// Closes `areas`. Under V1, V2 and V7, no fault uses these areas when the call returns, and no fault can
    /// use these areas until the write ends. V0 and V3 only mark the areas. Only the writer calls this
    /// function.
    fn close<'a, W: World>(&self, mm: &Mm<W>, local: &mut Local, areas: impl Iterator<Item = &'a Area>);

    /// Whether a fault checks its area again after it has taken the lock that covers its word.
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

/// Looks for the area again, under the address space's lock. Race: a writer has taken the area out of the
/// map, but other tasks can still use the area's pages until the writer has unmapped the pages. A fault may
/// return "no area" only after the unmap has ended. To wait for the end of the unmap, the fault takes the
/// address space's lock as a reader.
#[cold]
fn confirm<W: World>(mm: &Mm<W>, local: &mut Local, va: u64) -> Entered {
    local.stats.vma_fallback += 1;
    v1::V1.enter(mm, local, va)
}

/// Marks areas as closed, and does not wait for faults. A fault that checks its area later sees the mark.
fn mark<'a, W: World>(mm: &Mm<W>, areas: impl Iterator<Item = &'a Area>) {
    let write = mm.write_number();
    areas.for_each(|area| area.mark(write));
}
