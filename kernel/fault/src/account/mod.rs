//! Part R of a strategy: how an address space counts its resident pages (spec §1.6).

mod tally;

use crate::axis::axis;
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) use tally::Tally;

axis! { ($)
    /// How resident pages are counted.
    Account / AnyAccount;
    R0 = r0, "plain numbers under the lock over the page table (with P0 and P0n only)";
    R1 = r1, "two atomics on one cache line: all pages, anonymous pages (2.6.13)";
    R1b = r1b, "one atomic: anonymous pages";
    R1p = r1p, "two atomics, each on its own cache line";
    R2 = r2, "each task's own counts, added up when the task leaves its CPU (Christoph Lameter, 2005)";
    R3 = r3, "each task's own counts, added up on every 66th fault (2.6.34 to 6.1)";
    R4 = r4, "each task's own counters (each CPU's in 6.2), added up in batches under a lock";
}

/// A value of part R of a strategy counts the resident pages of an address space.
pub(crate) trait Accountant {
    fn new(tasks: u32) -> Self;

    /// Adds `counts` to the counts of the address space. When a task counts pages, the task still has the
    /// right to change the page-table words of these pages.
    fn add<W: World>(&self, mm: &Mm<W>, local: &mut Local, counts: Counts);

    /// The engine calls `on_fault` when a fault of the task begins.
    fn on_fault<W: World>(&self, _: &Mm<W>, _: &mut Local) {}

    /// The engine calls `on_schedule` when the scheduler has taken the task off its CPU.
    fn on_schedule<W: World>(&self, _: &Mm<W>, _: &mut Local) {}

    /// The engine calls `on_exit` when the task ends. R2 and R3 then add the task's own counts (*deltas*) to
    /// the address space's counters.
    fn on_exit<W: World>(&self, _: &Mm<W>, _: &mut Local) {}

    /// Reads the address space's counters. Counts that tasks have not folded yet are missing in the result.
    fn quick(&self) -> Counts;

    /// Reads the address space's counters, and under R4 adds the slots of all tasks. Counts that tasks under
    /// R2 and R3 have not folded are missing in the result. So under R2 and R3, the result is surely exact
    /// only after all tasks have ended.
    fn exact(&self) -> Counts {
        self.quick()
    }
}

impl AnyAccount {
    #[inline]
    pub(crate) fn add<W: World>(&self, mm: &Mm<W>, local: &mut Local, counts: Counts) {
        each!(self, account => account.add(mm, local, counts));
    }

    #[inline]
    pub(crate) fn on_fault<W: World>(&self, mm: &Mm<W>, local: &mut Local) {
        each!(self, account => account.on_fault(mm, local));
    }

    pub(crate) fn on_schedule<W: World>(&self, mm: &Mm<W>, local: &mut Local) {
        each!(self, account => account.on_schedule(mm, local));
    }

    pub(crate) fn on_exit<W: World>(&self, mm: &Mm<W>, local: &mut Local) {
        each!(self, account => account.on_exit(mm, local));
    }

    pub(crate) fn quick(&self) -> Counts {
        each!(self, account => account.quick())
    }

    pub(crate) fn exact(&self) -> Counts {
        each!(self, account => account.exact())
    }
}
