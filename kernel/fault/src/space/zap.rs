//! Removes access rights, pages and tables from a range of addresses.
//!
//! An unmap first exchanges each word for an empty word (ordering E4 of spec §1.3). After that, the unmap
//! waits for a grace period, so that no task still uses an old translation or table number (E5, E6). After
//! the grace period, the unmap frees frames and tables.

use alloc::vec::Vec;
use core::ops::Range;

use pageset_core::{Order, Pfn};

use super::AddressSpace;
use crate::area::{AreaMap, Prot};
use crate::atomic::Ordering;
use crate::counts::Counts;
use crate::local::Local;
use crate::pte::{Meaning, Pte, TableId};
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::{Memory, World};

/// When `zap` has collected at least `BLOCKS_MAX` unmapped blocks, `zap` waits for a grace period and frees
/// the blocks. Chosen: 4096 blocks of one 4 KiB page are 16 MiB, and the list of these blocks takes 64 KiB of
/// the heap.
const BLOCKS_MAX: usize = 4096;

/// Adjacent words of one table that lie in a range of addresses.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) slot: Slot,
    pub(super) indices: Range<u32>,
    /// The first address that the first word stands for.
    pub(super) va: u64,
}

impl<W: World> AddressSpace<W> {
    /// Unmaps every page in `range`. Frees each table of the range if `map` has no area at the addresses that
    /// the table covers.
    pub(super) fn zap(&self, local: &mut Local, range: &Range<u64>, map: &AreaMap) {
        let mut blocks = Vec::new();
        self.each_run(local, range, &mut |local, run| {
            self.zap_words(local, run, &mut blocks);
            if blocks.len() >= BLOCKS_MAX {
                self.free_unmapped(local, &mut blocks);
            }
        });
        let mut tables = Vec::new();
        self.unlink_unused(local, range, map, &mut tables);
        if tables.is_empty() && blocks.is_empty() {
            return;
        }
        self.free_unmapped(local, &mut blocks);
        debug_assert!(
            tables.iter().all(|table| self.engine().tables.holds_only(*table, Pte::EMPTY)),
            "{tables:?}: something was mapped in a table that was taken out of the tree"
        );
        self.engine().free_tables(local, &mut tables);
    }

    /// Makes all CPUs drop their translations, waits for a grace period, and then frees these blocks. No word
    /// maps the blocks.
    pub(crate) fn free_unmapped(&self, local: &mut Local, blocks: &mut Vec<(Pfn, Order)>) {
        self.world().shoot_down(local.cpu);
        self.engine().wait_for_sections(local);
        self.engine().free_blocks(local, blocks);
    }

    /// Calls `visit` with each run of words in `range`. A run is a series of words of one leaf table, or a
    /// word of level 1 that maps a huge page.
    ///
    /// Race: a fault that began before the areas were closed may still be adding a table. If the strategy
    /// protects upper tables by a lock, this method takes and releases that lock before it reads each upper
    /// table. When this method has had the lock, the fault's change is complete and visible.
    pub(super) fn each_run(
        &self,
        local: &mut Local,
        range: &Range<u64>,
        visit: &mut impl FnMut(&mut Local, Run),
    ) {
        let level = self.engine().geometry.root_level();
        let root = Slot { table: self.root(), index: 0, level, parent: None };
        self.descend(local, root, range, 0, visit);
    }

    /// Does the work of [`each_run`](Self::each_run) for one table. `start` is the first address that the
    /// table of `slot` covers.
    fn descend(
        &self,
        local: &mut Local,
        slot: Slot,
        range: &Range<u64>,
        start: u64,
        visit: &mut impl FnMut(&mut Local, Run),
    ) {
        let geometry = self.engine().geometry;
        let step = geometry.word_span(slot.level);
        let first = range.start.saturating_sub(start) / step;
        let end = (range.end - start).div_ceil(step).min(u64::from(geometry.entries()));
        let run = |indices: Range<u64>| Run {
            slot,
            va: start + indices.start * step,
            indices: indices.start as u32..indices.end as u32,
        };
        if slot.level == 0 {
            return visit(local, run(first..end));
        }
        drop(self.sync.hold(&self.mm, local, &slot, Intent::Fill));
        for index in first..end {
            let word = self.engine().tables.load(slot.table, index as u32);
            match word.meaning(slot.level) {
                Meaning::Table(table) => {
                    let below = slot.at(index as u32).below(table, 0);
                    self.descend(local, below, range, start + index * step, visit);
                }
                Meaning::Page => visit(local, run(index..index + 1)),
                Meaning::Empty | Meaning::Reclaimed(_) | Meaning::Busy => {}
            }
        }
    }

    /// Empties the words of a run, and drops the references to the pages that the words mapped. Appends
    /// blocks that have no reference any more to `blocks`.
    fn zap_words(&self, local: &mut Local, run: Run, blocks: &mut Vec<(Pfn, Order)>) {
        // This task is the writer, and only writers free tables, so the table still exists.
        let Ok(_held) = self.sync.hold(&self.mm, local, &run.slot, Intent::Fill) else { return };
        let mut words = 0;
        for index in run.indices {
            let word = self.engine().tables.word(run.slot.table, index);
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let old = Pte::from_bits(word.swap(0, Ordering::AcqRel));
            words += self.drop_page(local, old, blocks);
        }
        if words != 0 {
            let pages = words * self.engine().geometry.pages_per_word(run.slot.level);
            self.account.add(&self.mm, local, Counts::pages(-pages));
        }
    }

    /// Drops the reference that the old word had to a page or to a slot of the host. Returns 1 if the old
    /// word mapped a small or huge page, and 0 if the old word mapped no page or the zero page.
    pub(super) fn drop_page(&self, local: &mut Local, old: Pte, blocks: &mut Vec<(Pfn, Order)>) -> i64 {
        if let Meaning::Reclaimed(slot) = old.meaning(0) {
            self.world().memory().drop_slot(slot);
        }
        if !old.is_present() || old.is_zero_page() {
            return 0;
        }
        local.stats.prefault_wasted += u64::from(old.is_untouched());
        blocks.extend(self.engine().frames.put(old.pfn(), 1));
        1
    }

    /// Removes the rights that `prot` does not have from every page in `range`. When the call returns, no
    /// task holds a translation with the old rights.
    pub(super) fn restrict(&self, local: &mut Local, range: &Range<u64>, prot: Prot) {
        let mut blocks = Vec::new();
        self.each_run(local, range, &mut |local, run| {
            let Ok(_held) = self.sync.hold(&self.mm, local, &run.slot, Intent::Fill) else { return };
            for index in run.indices {
                let word = self.engine().tables.word(run.slot.table, index);
                loop {
                    let old = Pte::from_bits(word.load(Ordering::Acquire));
                    // Never store zero in the word, not even for a moment, because a fault might fill a word
                    // of zeros.
                    let new = if prot == Prot::None { old.hidden() } else { old.read_only() };
                    if !old.is_present() || new == old || self.sync.replace(word, old, new) {
                        break;
                    }
                }
            }
        });
        self.free_unmapped(local, &mut blocks);
    }

    /// Takes tables in `range` out of the tree if `map` has no area at the addresses that the tables cover.
    /// Linux's free_pgtables finds unused tables by its floor and ceiling.
    fn unlink_unused(&self, local: &mut Local, range: &Range<u64>, map: &AreaMap, out: &mut Vec<TableId>) {
        let geometry = self.engine().geometry;
        for level in 0..geometry.root_level() {
            let span = geometry.table_span(level);
            let mut start = geometry.span_around(range.start, level).start;
            while start < range.end {
                if !map.touches(&(start..start + span)) {
                    self.unlink(local, start, level, out);
                }
                start += span;
            }
        }
    }

    /// Takes the table of level `level` for `va` out of the tree, if this table exists and is empty.
    fn unlink(&self, local: &mut Local, va: u64, level: u8, out: &mut Vec<TableId>) {
        let tables = &self.engine().tables;
        let Some(parent) = self.slot_above(va, level) else { return };
        let Ok(_held) = self.sync.hold(&self.mm, local, &parent, Intent::Fill) else { return };
        let old = tables.load(parent.table, parent.index);
        let Meaning::Table(table) = old.meaning(parent.level) else { return };
        let _held_below = self.sync.hold_below(&self.mm, local, &parent.below(table, 0));
        if !tables.words_of(table).iter().all(|word| word.load(Ordering::Acquire) == 0) {
            return;
        }
        tables.set_stray(table, true);
        if self.sync.replace(tables.word(parent.table, parent.index), old, Pte::EMPTY) {
            self.account.add(&self.mm, local, Counts::tables(-1));
            local.stats.tables_freed += 1;
            if level == 0 {
                self.world().unlink_leaf(local.cpu, self.id(), va);
            }
            out.push(table);
        }
    }

    /// The place of the word that names the table of level `level` for `va`, if the tables above this table
    /// exist.
    pub(super) fn slot_above(&self, va: u64, level: u8) -> Option<Slot> {
        let geometry = self.engine().geometry;
        let root_level = geometry.root_level();
        let mut slot = Slot {
            table: self.root(),
            index: geometry.index(va, root_level),
            level: root_level,
            parent: None,
        };
        while slot.level > level + 1 {
            match self.engine().tables.load(slot.table, slot.index).meaning(slot.level) {
                Meaning::Table(table) => slot = slot.below(table, geometry.index(va, slot.level - 1)),
                _ => return None,
            }
        }
        Some(slot)
    }
}
