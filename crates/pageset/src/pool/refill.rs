//! A refill: half an array's blocks come from the depot, which asks the base for pageblocks.

use super::Inner;
use crate::arrays::{Batch, Class, Entry};
use crate::depot::Taken;

impl Inner {
    /// Refills this CPU's array, and returns one block more. `None` if it has no array, or memory or capacity is short.
    pub(super) fn refill(&self, class: Class) -> Option<Entry> {
        match class {
            Class::Order9 => self.refill_by(class, &mut Batch::of_pageblocks()),
            _ => self.refill_by(class, &mut Batch::new()),
        }
    }

    fn refill_by(&self, class: Class, batch: &mut Batch) -> Option<Entry> {
        let wanted = self.percpu.refill_size(class)?;
        self.fetch(class, wanted, batch);
        if batch.len() == 0 {
            // Near the capacity.
            self.fetch(class, 1, batch);
        }
        let first = batch.pop_back()?;
        self.percpu.push_many(class, batch);
        if batch.len() > 0 {
            // This thread was moved to a CPU whose array is fuller, or somebody else is at this one.
            self.put_in_depot(class, batch.as_slice());
        }
        Some(first)
    }

    /// Fetches up to `wanted` blocks into an empty batch, the lowest to be used first. The capacity is charged with them.
    pub(super) fn fetch(&self, class: Class, wanted: usize, batch: &mut Batch) {
        let mut taken = Taken::new(class, wanted, batch);
        let frames = u64::from(class.frames());
        if !self.capacity.try_charge(taken.missing() as u64 * frames) {
            return;
        }
        let cpu = self.percpu.cpu();
        let mut depot = self.depot.lock();
        depot.exchanges.refills += 1;
        depot.take(cpu, &mut taken, &self.base, &self.ledger);
        drop(depot);
        // What is known of them can be looked up when nobody waits for the lock: they are ours.
        taken.look_up(&self.ledger);
        if taken.missing() > 0 {
            self.fetch_scattered(&mut taken);
            self.capacity.uncharge(taken.missing() as u64 * frames);
        }
    }

    /// Fetches blocks from the base one by one, where no whole pageblock is free any more.
    #[cold]
    fn fetch_scattered(&self, taken: &mut Taken<'_>) {
        while taken.missing() > 0
            && let Some(frame) = self.base.alloc(taken.class.order())
        {
            taken.push(frame, &self.ledger);
        }
    }
}
