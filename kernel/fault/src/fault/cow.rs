//! Handles a store to a page that is mapped without the right to write. If the page is a whole block and has
//! no other user, the fault makes the page writable. Otherwise the fault maps a copy of the page. Before the
//! copy, the fault splits a huge page. In place of the zero page, the fault maps a cleared page.

use pageset_core::Order;

use super::attempt::{Attempt, Backing, Install, Step};
use crate::counts::Counts;
use crate::error::FaultError;
use crate::local::Local;
use crate::pte::Pte;
use crate::space::AddressSpace;
use crate::sync::Intent;
use crate::table::Slot;
use crate::world::{Memory, World};

impl<W: World> AddressSpace<W> {
    pub(super) fn copy_on_write(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
        slot: &Slot,
        old: Pte,
    ) -> Result<Step, FaultError> {
        if old.is_zero_page() {
            let pfn = self.take_clear(local, Order::ZERO, 0).ok_or(FaultError::OutOfMemory(attempt.va))?;
            return Ok(self.install_page(local, attempt, slot, (old, pfn)));
        }
        if let Some(step) = self.reuse(local, attempt, slot, old) {
            return Ok(step);
        }
        if slot.level > 0 {
            // Split the huge page into small pages. The next attempt copies only one small page, as Linux
            // does since 5.8.
            self.split(local, slot, old).map_err(|_| FaultError::OutOfMemory(attempt.va))?;
            return Ok(Step::Again);
        }
        self.copy(local, attempt, slot, old)
    }

    /// Makes the page writable if its block has no other user. A small page that is a part of a larger block
    /// is always copied, because the block has one reference count for all its parts.
    fn reuse(&self, local: &mut Local, attempt: Attempt<'_>, slot: &Slot, old: Pte) -> Option<Step> {
        let frames = &self.engine().frames;
        let (head, order) = frames.block(old.pfn());
        if old.is_huge() != (order > Order::ZERO) {
            return None;
        }
        let Ok(_held) = self.sync.hold(&self.mm, local, slot, Intent::Replace) else {
            return Some(Step::Again);
        };
        if !self.is_unchanged(local, attempt.ticket) {
            return Some(Step::Again);
        }
        let word = self.engine().tables.word(slot.table, slot.index);
        // Race: before this task got the right to change the word, another task freed the frame, and the
        // frame is now part of another block. So compare the frame's block again. If the word is unchanged,
        // the word's reference keeps the block from being freed.
        if word.load(crate::atomic::Ordering::Acquire) != old.bits()
            || frames.block(old.pfn()) != (head, order)
        {
            return Some(Step::Again);
        }
        if frames.refs(head) != 1 {
            return None;
        }
        let new = old.visible().writable().accessed();
        if !self.sync.replace(word, old, new) {
            return Some(Step::Again);
        }
        local.stats.cow_reused += 1;
        Some(Step::Done(self.backing(slot, new, attempt.va)))
    }

    /// Copies the page and maps the copy.
    fn copy(
        &self,
        local: &mut Local,
        attempt: Attempt<'_>,
        slot: &Slot,
        old: Pte,
    ) -> Result<Step, FaultError> {
        let engine = self.engine();
        let pfn = self.take_block(local, Order::ZERO).ok_or(FaultError::OutOfMemory(attempt.va))?;
        // Race: while this task copies the page, another task unmaps the page or stores to the page. This
        // task has a temporary reference, so no other task frees the page or makes the page writable. If the
        // word is still unchanged after the copy, this task has copied the right page.
        let Some(head) = engine.frames.try_get(old.pfn()) else {
            self.free_unused(local, pfn, Order::ZERO);
            return Ok(Step::Again);
        };
        let is_same =
            engine.tables.load(slot.table, slot.index) == old && engine.frames.block(old.pfn()).0 == head;
        let mut outcome = Install::Again;
        if is_same {
            self.world().memory().copy(local.cpu, old.pfn(), pfn);
            self.begin(pfn, Order::ZERO, 1);
            let words = (old, Pte::anon(pfn).writable());
            outcome = self.install(local, attempt, slot, words, Intent::Replace, Counts::default());
        }
        let refs = if outcome == Install::Done { 2 } else { 1 };
        local.unmapped.extend(engine.frames.put(head, refs));
        Ok(match outcome {
            Install::Done => {
                local.stats.cow_copied += 1;
                self.list(local, pfn);
                Step::Done(Backing::Frame(pfn))
            }
            Install::Lost => {
                local.stats.lost_pte += 1;
                self.give_back(local, pfn, 1);
                self.after_loss(attempt, slot)
            }
            Install::Again if is_same => {
                self.give_back(local, pfn, 1);
                Step::Again
            }
            Install::Again => {
                self.free_unused(local, pfn, Order::ZERO);
                Step::Again
            }
        })
    }
}
