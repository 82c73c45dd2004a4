//! A flush: half an array's blocks go to the depot, which frees in the base what is not its own.

use super::Inner;
use crate::arrays::{Batch, Class, Entry};

impl Inner {
    /// Moves half of this CPU's array to the depot to make room for a block.
    pub(super) fn flush(&self, class: Class, block: Entry) {
        match class {
            Class::Order9 => self.flush_by(class, block, &mut Batch::of_pageblocks()),
            _ => self.flush_by(class, block, &mut Batch::new()),
        }
    }

    fn flush_by(&self, class: Class, block: Entry, batch: &mut Batch) {
        self.percpu.pop_half(class, batch);
        if batch.len() == 0 || !self.percpu.push(class, block) {
            self.put_in_depot(class, &[block]);
        }
        self.put_in_depot(class, batch.as_slice());
    }

    /// Puts blocks into the depot: they are passed on as they are if there is room.
    pub(super) fn put_in_depot(&self, class: Class, entries: &[Entry]) {
        let mut depot = self.depot.lock();
        depot.exchanges.flushes += 1;
        let is_passed = depot.pass_on(class, entries);
        let refused = if is_passed { 0 } else { depot.put(class, entries, &self.base, &self.ledger) };
        drop(depot);
        self.note_put(class, entries.len(), refused);
    }

    /// Blocks of arrays are free, but for those that were free already.
    pub(super) fn note_put(&self, class: Class, blocks: usize, refused: u64) {
        if refused > 0 {
            self.counts.note_bad_frees(refused);
        }
        self.capacity.uncharge((blocks as u64 - refused) * u64::from(class.frames()));
    }
}
