//! R3: counters like Linux's SPLIT_RSS_COUNTING (spec §1.6). A task folds its deltas on every 66th fault. The
//! number is 66, because Linux tests whether it has counted more than 64 faults before it counts the current
//! fault.

use super::{Accountant, Tally};
use crate::atomic::Padded;
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

/// A task folds its deltas at a fault if the task has already counted more faults than this number. Source:
/// spec §1.6, Linux 2.6.34 to 6.1.
const EVENTS: u32 = 64;

pub(crate) struct R3(Padded<Tally>);

impl Accountant for R3 {
    fn new(_: u32) -> Self {
        Self(Padded::default())
    }

    #[inline]
    fn add<W: World>(&self, mm: &Mm<W>, local: &mut Local, counts: Counts) {
        if local.home == mm.id() {
            local.deltas += counts;
        } else {
            self.0.0.add(mm, local, counts);
        }
    }

    #[inline]
    fn on_fault<W: World>(&self, mm: &Mm<W>, local: &mut Local) {
        if local.home != mm.id() {
            return;
        }
        let events = local.events;
        local.events += 1;
        if events > EVENTS {
            local.events = 0;
            self.on_exit(mm, local);
        }
    }

    fn on_exit<W: World>(&self, mm: &Mm<W>, local: &mut Local) {
        self.0.0.fold(mm, local);
    }

    fn quick(&self) -> Counts {
        self.0.0.load()
    }
}
