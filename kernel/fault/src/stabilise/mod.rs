//! How a fault keeps its area unchanged (spec §1.5): the axis of "mmap_sem".

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
    /// Number of the write in progress, or of the next one. It is read before the map, so if that write has
    /// ended meanwhile, the map already includes it.
    pub(crate) write: u64,
    /// Number of the map that the area is in.
    pub(crate) map: u64,
    /// Index of the area in the task's copy of the map.
    pub(crate) index: usize,
    pub(crate) holds: Holds,
}

impl Ticket {
    /// Finds the area of `va` in the current map.
    #[inline]
    fn find<W: World>(mm: &Mm<W>, local: &mut Local, va: u64, holds: Holds) -> Option<Self> {
        let write = mm.write_number();
        let map = mm.refresh(&mut local.areas);
        let index = local.areas.find(va)?;
        Some(Self { write, map, index, holds })
    }

    /// Whether the area is unchanged: no write has replaced the map, and no write in progress has closed the
    /// area.
    #[inline]
    pub(crate) fn is_current<W: World>(&self, mm: &Mm<W>, local: &Local) -> bool {
        let write = mm.write_number();
        mm.map_number() == self.map && !local.areas.area(self.index).is_marked(write)
    }

    /// Releases what `enter` took, whatever the strategy.
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

/// A fault's hold on its area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// The address space's lock, as a reader.
    Space,
    /// The area's lock, as a reader.
    Area,
    /// A section of the engine's grace periods.
    Section,
}

/// Result of `enter`.
pub(crate) enum Entered {
    /// The area was found and is kept.
    Area(Ticket),
    /// The address belongs to no area.
    NoArea,
    /// A writer is changing the area: wait a little and try again.
    Busy,
}

/// A way to keep areas unchanged during a fault.
pub(crate) trait Stabiliser {
    fn new(tasks: u32) -> Self;

    /// Finds the area of `va` and keeps it until `leave`.
    fn enter<W: World>(&self, mm: &Mm<W>, local: &mut Local, va: u64) -> Entered;

    /// Ensures that no fault is in these areas, and that none enters before the write ends. Only the writer
    /// calls this.
    fn close<'a, W: World>(&self, mm: &Mm<W>, local: &mut Local, areas: impl Iterator<Item = &'a Area>);

    /// Whether a fault checks its area again once it has acquired the word.
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

/// Looks again under the address space's lock. An area that has left the map may still be in the process of
/// being unmapped, while other tasks use its pages. "No area" is a valid answer only after the unmap is done.
#[cold]
fn confirm<W: World>(mm: &Mm<W>, local: &mut Local, va: u64) -> Entered {
    local.stats.vma_fallback += 1;
    v1::V1.enter(mm, local, va)
}

/// Closes areas by their marks alone. Faults that look afterwards see the marks.
fn mark<'a, W: World>(mm: &Mm<W>, areas: impl Iterator<Item = &'a Area>) {
    let write = mm.write_number();
    areas.for_each(|area| area.mark(write));
}
