//! R2: the deltas of the 2005 comparison (spec §1.6). Plain numbers of the task, folded when it is scheduled away and
//! the lock over the page table happens to be free; with certainty when it leaves.

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

    /// A task of another address space has deltas of its own: its changes here go to the counters at once. They are
    /// atomic for that case only.
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
