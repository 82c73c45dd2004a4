//! A refill: half an array's blocks come from the depot, which asks the core for pageblocks.

use super::Inner;
use crate::arrays::{BATCH_MAX, Batch, Class, Entry, ZeroState};
use crate::depot::Taken;
use crate::sys::cpu;

impl Inner {
    /// Refills this CPU's array, and returns one block more. `None` if it has no array, or memory or capacity is short.
    pub(super) fn refill(&self, class: Class) -> Option<Entry> {
        let wanted = self.percpu.refill_size(class)?;
        let mut batch = self.fetch(class, wanted);
        if batch.len() == 0 {
            // Near the capacity.
            batch = self.fetch(class, 1);
        }
        let first = batch.pop_back()?;
        self.percpu.push_many(class, &mut batch);
        if batch.len() > 0 {
            // This thread was moved to a CPU whose array is fuller, or somebody else is at this one.
            self.put(class, batch.as_slice());
        }
        Some(first)
    }

    /// Fetches up to `wanted` blocks from the depot, the lowest to be used first. The capacity is charged with those it
    /// returns.
    pub(super) fn fetch(&self, class: Class, wanted: usize) -> Batch {
        let mut batch = Batch::new();
        let wanted = wanted.min(BATCH_MAX);
        let frames = u64::from(class.frames());
        if !self.capacity.try_charge(wanted as u64 * frames) {
            return batch;
        }
        let cpu = cpu::current();
        let mut taken = Taken::NONE;
        let mut depot = self.depot.lock();
        depot.exchanges.refills += 1;
        depot.take_passed(class, wanted, |entries| batch.fill(entries));
        depot.take(cpu, class, wanted - batch.len(), &self.core, &mut taken);
        while taken.is_full() && batch.len() + taken.blocks() < wanted {
            self.look_up(class, &mut taken, &mut batch);
            depot.take(cpu, class, wanted - batch.len(), &self.core, &mut taken);
        }
        drop(depot);
        // What is known of them can be looked up when nobody waits for the lock: they are ours.
        self.look_up(class, &mut taken, &mut batch);
        if batch.len() < wanted {
            self.fetch_scattered(class, wanted, &mut batch);
            self.capacity.uncharge((wanted - batch.len()) as u64 * frames);
        }
        batch
    }

    /// Adds what the depot gave to a batch, with what the ledger knows of it.
    #[inline]
    fn look_up(&self, class: Class, taken: &mut Taken, batch: &mut Batch) {
        for parts in taken.as_slice() {
            match class {
                Class::Order0 => {
                    let zero = self.ledger.take_bits(parts.first, parts.bits);
                    for frame in parts.frames(class) {
                        batch.push_front(Entry::with_zero(frame, ZeroState::of_bit(zero >> (frame % 64))));
                    }
                }
                Class::Order9 => {
                    batch.push_front(Entry::with_zero(parts.first, self.ledger.take_pageblock(parts.first)));
                }
                _ => parts.frames(class).for_each(|frame| batch.push_front(self.entry(class, frame))),
            }
        }
        *taken = Taken::NONE;
    }

    /// Fetches blocks from the core, where no whole pageblock is free any more.
    #[cold]
    fn fetch_scattered(&self, class: Class, wanted: usize, batch: &mut Batch) {
        while batch.len() < wanted
            && let Some(frame) = self.core.alloc(class.order())
        {
            batch.push_front(self.entry(class, frame));
        }
    }

    /// A block with what the ledger knows of it.
    fn entry(&self, class: Class, frame: u32) -> Entry {
        Entry::with_zero(frame, self.ledger.take(frame..frame + class.frames()))
    }
}
