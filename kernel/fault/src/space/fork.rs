//! Copies an address space. Parent and child share each page until a task of the parent or child stores to
//! the page.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::AddressSpace;
use super::zap::Run;
use crate::area::AreaMap;
use crate::atomic::Ordering;
use crate::counts::Counts;
use crate::error::SpaceError;
use crate::local::Local;
use crate::pte::{Meaning, Pte};
use crate::sync::Intent;
use crate::table::{Found, Slot};
use crate::world::{Memory, World};

impl<W: World> AddressSpace<W> {
    pub(crate) fn fork(&self, local: &mut Local) -> Result<Arc<Self>, SpaceError> {
        let root = self.engine().take_table_for(local).ok_or(SpaceError::OutOfMemory)?;
        let mut copied = Ok(());
        let write = self.write(local);
        write.close(local, write.map.areas());
        let child = Self::on(self.engine(), self.options, local.cpu, root, self.copy_areas(&write.map));
        for area in write.map.areas() {
            self.each_run(local, &area.range, &mut |local, run| {
                if copied.is_ok() {
                    copied = self.copy_run(local, &child, run);
                }
            });
        }
        // Parent and child share all pages now. Wait until no task has a writable translation to a shared
        // page.
        self.free_unmapped(local, &mut Vec::new());
        drop(write);
        copied.map(|()| Arc::new(child))
    }

    fn copy_areas(&self, map: &AreaMap) -> AreaMap {
        map.areas().iter().fold(AreaMap::default(), |copy, area| {
            copy.with(area.range.clone(), Some(area.prot), || self.engine().next_area()).map
        })
    }

    /// Copies a run of words into the child's page table. No other task can reach the child yet.
    fn copy_run(&self, local: &mut Local, child: &Self, run: Run) -> Result<(), SpaceError> {
        let step = self.engine().geometry.word_span(run.slot.level);
        let mut pages = 0;
        for (index, va) in run.indices.zip((run.va..).step_by(step as usize)) {
            if self.engine().tables.load(run.slot.table, index) == Pte::EMPTY {
                continue;
            }
            // Build the child's table before the child gets the word. So if no page table is left, the fork
            // fails and leaves the parent's word unchanged.
            let to = match child.walk_or_build(local, va, run.slot.level) {
                Ok(Found::Word(to, _)) => to,
                _ => return Err(SpaceError::OutOfMemory),
            };
            let shared = self.share_word(local, &run.slot.at(index));
            child.engine().tables.word(to.table, to.index).store(shared.bits(), Ordering::Release);
            pages += i64::from(shared.is_present() && !shared.is_zero_page());
        }
        let pages = pages * self.engine().geometry.pages_per_word(run.slot.level);
        child.account.add(&child.mm, local, Counts::pages(pages));
        Ok(())
    }

    /// Removes the right to write from a word, and adds a reference to the page that the word maps. Returns
    /// the child's word.
    fn share_word(&self, local: &mut Local, slot: &Slot) -> Pte {
        let word = self.engine().tables.word(slot.table, slot.index);
        loop {
            // This task is the writer, and only writers free tables, so `hold` succeeds.
            let Ok(_held) = self.sync.hold(&self.mm, local, slot, Intent::Replace) else { return Pte::EMPTY };
            let old = self.engine().tables.load(slot.table, slot.index);
            match old.meaning(0) {
                Meaning::Reclaimed(slot) => {
                    self.world().memory().share_slot(slot);
                    return old;
                }
                _ if !old.is_present() || old.is_zero_page() => return old,
                _ => {}
            }
            if self.sync.replace(word, old, old.read_only()) {
                self.engine().frames.get(old.pfn(), 1);
                return old.read_only();
            }
        }
    }
}
