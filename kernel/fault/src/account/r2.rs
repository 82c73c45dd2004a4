//! R2: each task counts its changes of resident pages in plain numbers (*deltas*), as in the 2005 comparison
//! (spec §1.6). A task folds its deltas when the scheduler takes the task off its CPU, if the page-table lock
//! is free. A task that ends always folds its deltas.

use super::{Accountant, Tally};
use crate::atomic::Padded;
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) struct R2(Padded<Tally>);

impl Accountant for R2 {
    fn new(_: u32) -> Self {
        Self(Padded::default())
    }

    /// A debugger's task may fault in an address space that is not its own. The task's deltas belong to its
    /// own address space, so the task adds pages of a foreign address space to the shared counters of that
    /// address space at once. Only additions to foreign address spaces need atomic counters, because tasks
    /// that fold hold the page-table lock.
    #[inline]
    fn add<W: World>(&self, mm: &Mm<W>, local: &mut Local, counts: Counts) {
        if local.home == mm.id() {
            local.deltas += counts;
        } else {
            self.0.0.add(mm, local, counts);
        }
    }

    fn on_schedule<W: World>(&self, mm: &Mm<W>, local: &mut Local) {
        if let Some(_held) = mm.page_table_lock.0.try_lock() {
            self.0.0.fold(mm, local);
        }
    }

    fn on_exit<W: World>(&self, mm: &Mm<W>, local: &mut Local) {
        let _held = mm.lock_page_table(local);
        self.0.0.fold(mm, local);
    }

    fn quick(&self) -> Counts {
        self.0.0.load()
    }
}
