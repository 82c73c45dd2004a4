//! R3: counters like Linux's SPLIT_RSS_COUNTING (spec §1.6). A task folds its deltas on every 66th fault.
//! Linux tests "more than 64 faults" before it counts the current fault, so the number is 66 and not 65.

use super::{Accountant, Tally};
use crate::atomic::Padded;
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

/// A task that has already counted more than `EVENTS` faults folds its deltas at the next fault. Source: spec
/// §1.6, Linux 2.6.34 to 6.1.
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
