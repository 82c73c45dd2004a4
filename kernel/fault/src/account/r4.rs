//! R4: counters like Linux's percpu_counter (spec §1.6). In Linux, each CPU has its own counters. In this
//! crate, each task has its own slot of counters. When the absolute value of a counter in the slot reaches
//! `batch`, the task adds the slot to the shared counters under a lock. Only one task writes a slot, so the
//! task changes the slot with plain loads and stores.

use alloc::boxed::Box;

use super::{Accountant, Tally};
use crate::atomic::Padded;
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

pub(crate) struct R4 {
    shared: Padded<Tally>,
    slots: Box<[Padded<Tally>]>,
    batch: i64,
}

impl Accountant for R4 {
    fn new(tasks: u32) -> Self {
        Self {
            shared: Padded::default(),
            slots: (0..tasks).map(|_| Padded::default()).collect(),
            // Source: spec §1.6. The batch of Linux 6.12 is max(32, 2 x CPUs). This crate counts tasks
            // instead of CPUs.
            batch: 32.max(2 * i64::from(tasks)),
        }
    }

    #[inline]
    fn add<W: World>(&self, mm: &Mm<W>, local: &mut Local, counts: Counts) {
        let slot = &self.slots[local.slot as usize].0;
        slot.add_locked(counts);
        let kept = slot.load();
        if [kept.rss, kept.anon_rss, kept.tables].iter().any(|kept| kept.abs() >= self.batch) {
            let _held = mm.fold_lock.0.lock();
            mm.world().shares(local.cpu, mm.rss_line());
            self.shared.0.add_locked(kept);
            slot.add_locked(Counts { rss: -kept.rss, anon_rss: -kept.anon_rss, tables: -kept.tables });
            local.stats.rss_flush += 1;
        }
    }

    fn quick(&self) -> Counts {
        self.shared.0.load()
    }

    fn exact(&self) -> Counts {
        let mut sum = self.shared.0.load();
        self.slots.iter().for_each(|slot| sum += slot.0.load());
        sum
    }
}
