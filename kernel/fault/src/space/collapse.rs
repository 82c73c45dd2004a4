//! Replaces small pages by one huge page, as Linux's khugepaged does (spec §1.7, races 5 and 6).
//!
//! Race: a fault has already walked to the leaf table that a collapse replaces. Before the collapse copies a
//! page, it closes the table in three steps. The collapse sets the parent word, which names the table, to
//! "busy", marks the table as taken out of the tree, and exchanges each word of the table for poison. So the
//! fault cannot map its page in the closed table. Under P0, P0n and P3, the fault finds the mark. Under P1,
//! the fault finds that the parent word has changed. Under P2, the fault's compare-exchange fails. Under
//! every strategy, the fault starts again from the root.

use alloc::vec::Vec;

use pageset_core::{Order, Pfn};

use super::AddressSpace;
use crate::area::Prot;
use crate::atomic::Ordering;
use crate::counts::Counts;
use crate::error::SpaceError;
use crate::frames::FrameSource;
use crate::local::Local;
use crate::lru::Lru;
use crate::pte::{Meaning, Pte, TableId};
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::{Memory, World};

impl<W: World> AddressSpace<W> {
    pub(crate) fn collapse(&self, local: &mut Local, va: u64) -> Result<(), SpaceError> {
        let geometry = self.engine().geometry;
        let order = geometry.huge_order().ok_or(SpaceError::NoHugePages)?;
        if va >= geometry.end() {
            return Err(SpaceError::NotEligible);
        }
        let span = geometry.span_around(va, 0);
        let write = self.write(local);
        let area = write.map.find(va).map(|index| &write.map.areas()[index]);
        let area = area
            .filter(|area| {
                area.range.start <= span.start && span.end <= area.range.end && area.prot != Prot::None
            })
            .ok_or(SpaceError::NotEligible)?;
        write.close(local, [area]);
        let parent = self.slot_above(va, 0).ok_or(SpaceError::NotEligible)?;
        let named = self.engine().tables.load(parent.table, parent.index);
        let Meaning::Table(table) = named.meaning(parent.level) else { return Err(SpaceError::NotEligible) };
        let is_whole = |index| {
            matches!(self.engine().tables.load(table, index).meaning(0), Meaning::Empty | Meaning::Page)
        };
        if !(0..geometry.entries()).all(is_whole) {
            return Err(SpaceError::NotEligible);
        }
        let block = self.engine().take_large(local, order).ok_or(SpaceError::OutOfMemory)?;
        let Some(words) = self.close_table(local, &parent, named, table) else {
            let _ = self.world().frames().free(local.cpu, block, order);
            return Err(SpaceError::NotEligible);
        };
        self.world().shoot_down(local.cpu);
        self.engine().wait_for_sections(local);
        self.fill(local, block, &words);
        self.open_as_huge(local, &parent, (block, order), area.prot, &words);
        let mut blocks = Vec::new();
        for word in &words {
            self.drop_page(local, *word, &mut blocks);
        }
        self.engine().free_blocks(local, &mut blocks);
        debug_assert!(
            self.engine().tables.holds_only(table, Pte::POISON),
            "{table:?}: something was mapped in a table that was closed"
        );
        self.engine().free_tables(local, &mut alloc::vec![table]);
        Ok(())
    }

    /// Closes a leaf table to faults. Returns the words that the table had, or `None` if another task has
    /// changed the parent word.
    fn close_table(&self, local: &mut Local, parent: &Slot, named: Pte, table: TableId) -> Option<Vec<Pte>> {
        let tables = &self.engine().tables;
        let _held = self.sync.hold(&self.mm, local, parent, Intent::Replace).ok()?;
        let _held_below = self.sync.hold_below(&self.mm, local, &parent.below(table, 0));
        if !self.sync.replace(tables.word(parent.table, parent.index), named, Pte::MIGR) {
            return None;
        }
        tables.set_stray(table, true);
        let mut words = Vec::with_capacity(tables.words_of(table).len());
        for (index, word) in tables.words_of(table).iter().enumerate() {
            if index % 8 == 0 {
                self.world()
                    .shares(local.cpu, crate::world::Line::Words { table: table.0, line: index as u32 / 8 });
            }
            words.push(Pte::from_bits(word.swap(Pte::POISON.bits(), Ordering::AcqRel)));
        }
        Some(words)
    }

    /// Copies the mapped pages into the huge page, and clears the rest of the huge page.
    fn fill(&self, local: &mut Local, block: Pfn, words: &[Pte]) {
        let memory = self.world().memory();
        for (index, word) in (0..).zip(words) {
            let to = Pfn(block.0 + index);
            if word.is_present() && !word.is_zero_page() {
                memory.copy(local.cpu, word.pfn(), to);
            } else {
                memory.clear(local.cpu, to, Order::ZERO, 0);
            }
        }
    }

    fn open_as_huge(
        &self,
        local: &mut Local,
        parent: &Slot,
        (block, order): (Pfn, Order),
        prot: Prot,
        words: &[Pte],
    ) {
        let engine = self.engine();
        engine.frames.begin(block, order, 1);
        Lru::<W::RawLock>::mark(engine.frames.frame(block));
        let huge = Pte::anon(block).huge();
        let huge = if prot == Prot::ReadWrite { huge.writable() } else { huge };
        let before = words.iter().filter(|word| word.is_present() && !word.is_zero_page()).count();
        // Other tasks do not change a busy word. This task is the writer, and only writers free tables, so
        // the parent table still exists.
        if let Ok(_held) = self.sync.hold(&self.mm, local, parent, Intent::Replace) {
            self.sync.replace(engine.tables.word(parent.table, parent.index), Pte::MIGR, huge);
            let more = i64::from(engine.geometry.entries()) - before as i64;
            self.account.add(&self.mm, local, Counts { tables: -1, ..Counts::pages(more) });
        }
        engine.lru.add(&engine.frames, local.cpu, &mut local.lru, block);
        local.stats.tables_freed += 1;
        local.stats.installed += (words.len() - before) as u64;
        local.stats.huge += 1;
    }
}
