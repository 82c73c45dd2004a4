//! How an address space counts its pages (spec §1.6).

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
    R1 = r1, "two atomics on one line: all pages, anonymous pages (2.6.13)";
    R1b = r1b, "one atomic: anonymous pages";
    R1p = r1p, "two atomics on a line each";
    R2 = r2, "each task's deltas, folded when it is scheduled (Christoph Lameter, 2005)";
    R3 = r3, "each task's deltas, folded on every 66th fault (2.6.34 to 6.1)";
    R4 = r4, "a counter per CPU, folded by batches under a lock (6.2)";
}

/// A way to count resident pages.
pub(crate) trait Accountant {
    fn new(tasks: u32) -> Self;

    /// Adds to the counts. The caller holds the page-table strategy's right to change the words concerned.
    fn add<W: World>(&self, mm: &Mm<W>, local: &mut Local, counts: Counts);

    /// Called when a fault of the task begins.
    fn on_fault<W: World>(&self, _: &Mm<W>, _: &mut Local) {}

    /// Called when the task is scheduled away.
    fn on_schedule<W: World>(&self, _: &Mm<W>, _: &mut Local) {}

    /// Called when the task leaves the address space: its deltas must be folded now.
    fn on_exit<W: World>(&self, _: &Mm<W>, _: &mut Local) {}

    /// Reads the counters without summing. Misses the deltas that tasks or CPUs still hold.
    fn quick(&self) -> Counts;

    /// Sums everything except the tasks' own deltas. Exact once all tasks have left and no thread changes
    /// counts.
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
