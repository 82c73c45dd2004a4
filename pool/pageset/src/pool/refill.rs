//! A refill moves blocks from the base to an array, up to half of the array's capacity.

use pageset_blocks::RowBlocks;

use super::Inner;
use crate::arrays::{Batch, Class, Entry, ZeroState};

impl Inner {
    /// Refills this CPU's array, and returns one of the fetched blocks. `None` if the CPU has no array of
    /// this class, or if memory or capacity is short.
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
            // The capacity has no room for half an array, or the base has no block. Try a single block.
            self.fetch(class, 1, batch);
        }
        let first = batch.pop_back()?;
        self.percpu.push_many(class, batch);
        if batch.len() > 0 {
            // Some blocks did not fit into this CPU's array. For example, another thread has filled the array
            // or holds its lock, or this thread has moved to a CPU with a fuller array.
            self.pass_on(class, batch.as_slice());
        }
        Some(first)
    }

    /// Fetches up to `wanted` blocks into an empty batch, and charges them to the capacity. The block to use
    /// first comes last in the batch.
    pub(super) fn fetch(&self, class: Class, wanted: usize, batch: &mut Batch) {
        let wanted = wanted.min(batch.capacity());
        let frames = u64::from(class.frames());
        if !self.capacity.try_charge(wanted as u64 * frames) {
            return;
        }
        let cpu = self.percpu.cpu();
        loop {
            let before = batch.len();
            let words = self.base.fetch(cpu, class, wanted, batch);
            // The base's lock is not needed to read the ledger, because no other thread has these blocks now.
            words.into_iter().flatten().for_each(|blocks| self.hand_out(class, blocks, batch));
            if batch.len() == wanted || batch.len() == before {
                break;
            }
        }
        if batch.len() < wanted {
            self.capacity.uncharge((wanted - batch.len()) as u64 * frames);
        }
    }

    /// Puts blocks that were just allocated into a batch, and notes which are known to be zero.
    #[inline]
    fn hand_out(&self, class: Class, blocks: RowBlocks, batch: &mut Batch) {
        match class {
            Class::Order0 => {
                let first = blocks.first().0 as u32;
                let shift = first % 64;
                let zero = self.ledger.hand_out_bits(first - shift, (blocks.heads() as u64) << shift);
                for block in blocks {
                    let frame = block.0 as u32;
                    batch.push_front(Entry::with_zero(frame, ZeroState::of_bit(zero >> (frame % 64))));
                }
            }
            Class::Order9 => {
                for frame in blocks.map(|block| block.0 as u32) {
                    batch.push_front(Entry::with_zero(frame, self.ledger.hand_out_pageblock(frame)));
                }
            }
            _ => {
                for frame in blocks.map(|block| block.0 as u32) {
                    let zero = self.ledger.hand_out(frame..frame + class.frames());
                    batch.push_front(Entry::with_zero(frame, zero));
                }
            }
        }
    }
}
