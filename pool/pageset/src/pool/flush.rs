//! A flush moves half of an array's blocks to the base.

use super::Inner;
use crate::arrays::{Batch, Class, Entry};

impl Inner {
    /// Moves half of this CPU's array to the base, to make room for `block`, and puts `block` into the array.
    /// If the array still has no room, `block` goes to the base too.
    pub(super) fn flush(&self, class: Class, block: Entry) {
        match class {
            Class::Order9 => self.flush_by(class, block, &mut Batch::of_pageblocks()),
            _ => self.flush_by(class, block, &mut Batch::new()),
        }
    }

    fn flush_by(&self, class: Class, block: Entry, batch: &mut Batch) {
        self.percpu.pop_half(class, batch);
        if batch.len() == 0 || !self.percpu.push(class, block) {
            self.pass_on(class, &[block]);
        }
        if batch.len() > 0 {
            self.pass_on(class, batch.as_slice());
        }
    }

    /// Passes blocks on to the next refill of any CPU. Frees the blocks instead if memory or capacity is
    /// short, or if the list for the class is full.
    pub(super) fn pass_on(&self, class: Class, entries: &[Entry]) {
        // Blocks that are passed on cannot merge into larger blocks. Pass blocks on only while users and
        // arrays may still get at least a quarter of the pool's frames.
        let is_ample = self.capacity.left() >= u64::from(self.frames) / 4;
        let refused = self.base.flush(self.percpu.cpu(), class, entries, &self.ledger, is_ample);
        self.note_freed_entries(class, entries.len(), refused);
    }

    /// Ends the charge of freed blocks. The `refused` blocks are double frees, whose charge has already
    /// ended.
    pub(super) fn note_freed_entries(&self, class: Class, blocks: usize, refused: usize) {
        if refused > 0 {
            self.counts.note_bad_frees(refused as u64);
        }
        self.capacity.uncharge((blocks - refused) as u64 * u64::from(class.frames()));
    }
}
