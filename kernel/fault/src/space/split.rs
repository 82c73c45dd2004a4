//! Splits a huge page. The huge page's block stays whole, but each small page gets its own word in a new leaf
//! table.

use super::AddressSpace;
use crate::atomic::Ordering;
use crate::counts::Counts;
use crate::error::SpaceError;
use crate::local::Local;
use crate::pte::{Meaning, Pte};
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::World;

impl<W: World> AddressSpace<W> {
    /// Splits the huge page that contains `va`, unless `va` is the first address of this huge page.
    pub(super) fn split_at(&self, local: &mut Local, va: u64) -> Result<(), SpaceError> {
        let inside = !va.is_multiple_of(self.engine().geometry.table_span(0));
        let Some(slot) = self.slot_above(va, 0).filter(|_| inside) else { return Ok(()) };
        loop {
            let word = self.engine().tables.load(slot.table, slot.index);
            if word.meaning(slot.level) != Meaning::Page || self.split(local, &slot, word)? {
                return Ok(());
            }
        }
    }

    /// Replaces the word of a huge page by a table with a word for each small page. Returns `false` if
    /// another task has changed the word.
    pub(crate) fn split(&self, local: &mut Local, slot: &Slot, huge: Pte) -> Result<bool, SpaceError> {
        let (engine, pages) = (self.engine(), self.engine().geometry.entries());
        let table = engine.take_table_for(local).ok_or(SpaceError::OutOfMemory)?;
        for (index, word) in (0..).zip(engine.tables.words_of(table)) {
            word.store(huge.small(index).bits(), Ordering::Relaxed);
        }
        let done = match self.sync.hold(&self.mm, local, slot, Intent::Replace) {
            Err(_) => false,
            Ok(_held) => {
                let word = engine.tables.word(slot.table, slot.index);
                // The huge page's word has a reference to the block, and this task has the right to change
                // the word, so no task can free the block now. Add the references of the small words before
                // the new table is visible. When the table is visible, another task may unmap a small page at
                // once.
                let is_there = word.load(Ordering::Acquire) == huge.bits();
                if is_there {
                    engine.frames.get(huge.pfn(), pages - 1);
                }
                let done = is_there && self.sync.replace(word, huge, Pte::table(table));
                if is_there && !done {
                    local.unmapped.extend(engine.frames.put(huge.pfn(), pages - 1));
                }
                if done {
                    self.account.add(&self.mm, local, Counts::tables(1));
                    local.stats.tables_alloc += 1;
                }
                done
            }
        };
        if !done {
            engine.free_tables(local, &mut alloc::vec![table]);
        }
        Ok(done)
    }
}
