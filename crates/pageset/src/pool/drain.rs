//! A drain: all that is cached goes downwards, from the arrays to the depot and from there to the base, so that large
//! blocks can be made of it.

use std::sync::atomic::Ordering::Relaxed;

use pageset_core::Order;

use super::Inner;
use crate::arrays::{Batch, Class};

impl Inner {
    /// Moves everything that is cached to the base, but for pageblocks of which a part is in use, and as many as are kept.
    pub(super) fn empty_caches(&self, kept: usize) {
        self.drain_arrays();
        self.release_whole(kept);
    }

    /// Empties the arrays of all CPUs into the depot, and there into pageblocks.
    pub(super) fn drain_arrays(&self) {
        let _one_at_a_time = self.drain.lock();
        self.put_passed();
        if self.percpu.frames() == 0 {
            return;
        }
        let is_drained = self.percpu.drain(|class, entries| {
            let refused = self.depot.lock().put(class, entries, &self.base, &self.ledger);
            self.note_put(class, entries.len(), refused);
        });
        let count = if is_drained { &self.counts.array_drains } else { &self.counts.array_drains_refused };
        count.fetch_add(1, Relaxed);
    }

    /// Puts blocks that were to be passed on to their places.
    fn put_passed(&self) {
        let mut depot = self.depot.lock();
        for class in Class::ALL {
            loop {
                let entries: &mut Batch = &mut Batch::new();
                depot.take_passed(class, entries);
                if entries.len() == 0 {
                    break;
                }
                let refused = depot.put(class, entries.as_slice(), &self.base, &self.ledger);
                if refused > 0 {
                    // Freed twice: somebody's frames, which were taken for free until now.
                    self.counts.note_bad_frees(refused);
                    self.capacity.charge(refused * u64::from(class.frames()));
                }
            }
        }
    }

    /// Moves whole pageblocks of the depot, but for so many, to the base.
    pub(super) fn release_whole(&self, kept: usize) {
        self.depot.lock().release_whole(kept, |first| self.base.release(first, Order::PAGEBLOCK));
    }

    /// Moves all that is free in the depot to the base.
    pub(super) fn dissolve_depot(&self) {
        let mut depot = self.depot.lock();
        depot.release_whole(0, |first| self.base.release(first, Order::PAGEBLOCK));
        depot.dissolve_all(|free| self.base.release_range(free));
    }
}
