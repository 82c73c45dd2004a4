//! A drain frees all blocks that lie in arrays or were passed on, so that these blocks can merge into larger
//! blocks in the base.

use std::sync::atomic::Ordering::Relaxed;

use super::Inner;
use crate::arrays::Class;

impl Inner {
    /// Frees the blocks in the arrays of all CPUs.
    pub(super) fn drain_arrays(&self) {
        let _one_at_a_time = self.drain.lock();
        self.free_passed();
        if self.percpu.frames() == 0 {
            return;
        }
        let cpu = self.percpu.cpu();
        let is_drained = self.percpu.drain(|class, entries| {
            let refused = self.base.free_many(cpu, class, entries, &self.ledger);
            self.note_freed_entries(class, entries.len(), refused);
        });
        let count = if is_drained { &self.counts.array_drains } else { &self.counts.array_drains_refused };
        count.fetch_add(1, Relaxed);
    }

    /// Frees the blocks that were passed on.
    fn free_passed(&self) {
        if self.base.passed_frames() == 0 {
            return;
        }
        for class in Class::ALL {
            loop {
                let (blocks, refused) = self.base.free_passed(class, &self.ledger);
                if refused > 0 {
                    // After a double free, each of the two frees ended a charge, but the frames were charged
                    // once. Charge the frames again to correct the number of charged frames.
                    self.counts.note_bad_frees(refused as u64);
                    self.capacity.charge(refused as u64 * u64::from(class.frames()));
                }
                if blocks == 0 {
                    break;
                }
            }
        }
    }
}
