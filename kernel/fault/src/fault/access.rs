//! Accesses a page as a CPU does: translates the address, and handles a page fault if the page table does not
//! permit the access.

use super::attempt::Backing;
use crate::area::Access;
use crate::atomic::Ordering;
use crate::error::FaultError;
use crate::grace::Grace;
use crate::local::Local;
use crate::pte::Meaning;
use crate::space::AddressSpace;
use crate::table::{Found, walk};
use crate::world::World;

/// A task's section, which ends when the `Section` value is dropped, even if `touch` panics. If a section
/// never ended, a writer would wait for its grace period for ever.
struct Section<'a> {
    grace: &'a Grace,
    slot: u32,
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        self.grace.leave(self.slot);
    }
}

impl<W: World> AddressSpace<W> {
    /// Calls `touch` with the page of address `va`. Until `touch` returns, no other task can free the page
    /// (ordering E5 of spec §1.3).
    pub(crate) fn access<T>(
        &self,
        local: &mut Local,
        va: u64,
        access: Access,
        mut touch: impl FnMut(Backing) -> T,
    ) -> Result<T, FaultError> {
        loop {
            if let Some(touched) = self.touch(local, va, access, &mut touch) {
                return Ok(touched);
            }
            self.fault(local, va, access)?;
        }
    }

    pub(crate) fn reaches(&self, local: &Local, va: u64, access: Access) -> bool {
        self.touch(local, va, access, &mut |_| ()).is_some()
    }

    fn touch<T>(
        &self,
        local: &Local,
        va: u64,
        access: Access,
        touch: &mut impl FnMut(Backing) -> T,
    ) -> Option<T> {
        let engine = self.engine();
        if va >= engine.geometry.end() {
            return None;
        }
        engine.grace.enter(local.slot);
        let _section = Section { grace: &engine.grace, slot: local.slot };
        let Found::Word(slot, word) = walk(&engine.tables, engine.geometry, self.root(), va, 0) else {
            return None;
        };
        if word.meaning(slot.level) != Meaning::Page || !word.permits(access) {
            return None;
        }
        if word.is_untouched() {
            // Like the hardware, set the accessed bit only if the word has not changed.
            let cell = engine.tables.word(slot.table, slot.index);
            let seen = word.accessed().bits();
            let _ = cell.compare_exchange(word.bits(), seen, Ordering::Relaxed, Ordering::Relaxed);
        }
        Some(touch(self.backing(&slot, word, va)))
    }
}
