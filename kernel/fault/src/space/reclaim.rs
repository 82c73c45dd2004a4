//! Reclaims one page: the host saves the contents, and the page's word then names the host's slot (spec §1.7,
//! race 9).

use alloc::vec::Vec;

use pageset_core::Order;

use super::AddressSpace;
use crate::counts::Counts;
use crate::error::SpaceError;
use crate::local::Local;
use crate::pte::{Meaning, Pte};
use crate::sync::Intent;
use crate::table::{Found, Slot, walk};
use crate::world::{Memory, World};

impl<W: World> AddressSpace<W> {
    pub(crate) fn reclaim(&self, local: &mut Local, va: u64) -> Result<(), SpaceError> {
        if va >= self.engine().geometry.end() {
            return Err(SpaceError::NotEligible);
        }
        // Until `_write` is dropped, no other writer can run. Faults can run, except under V1.
        let _write = self.write(local);
        let (slot, old) = match walk(&self.engine().tables, self.engine().geometry, self.root(), va, 0) {
            Found::Word(slot, word) if slot.level == 0 && self.is_eligible(word) => (slot, word),
            _ => return Err(SpaceError::NotEligible),
        };
        // Mark the word as busy, so that faults on the page wait until the host has saved the contents.
        if !self.change_word(local, &slot, old, Pte::MIGR, Counts::default()) {
            return Err(SpaceError::NotEligible);
        }
        self.world().shoot_down(local.cpu);
        self.engine().wait_for_sections(local);
        match self.world().memory().save(local.cpu, old.pfn()) {
            None => {
                self.change_word(local, &slot, Pte::MIGR, old, Counts::default());
                Err(SpaceError::NoSwap)
            }
            Some(place) => {
                self.change_word(local, &slot, Pte::MIGR, Pte::reclaimed(place), Counts::pages(-1));
                let mut blocks = Vec::new();
                self.drop_page(local, old, &mut blocks);
                self.engine().free_blocks(local, &mut blocks);
                Ok(())
            }
        }
    }

    /// Whether the word maps a small page that has no other user.
    fn is_eligible(&self, word: Pte) -> bool {
        word.meaning(0) == Meaning::Page && !word.is_zero_page() && {
            let (head, order) = self.engine().frames.block(word.pfn());
            order == Order::ZERO && self.engine().frames.refs(head) == 1
        }
    }

    fn change_word(&self, local: &mut Local, slot: &Slot, old: Pte, new: Pte, counts: Counts) -> bool {
        let Ok(_held) = self.sync.hold(&self.mm, local, slot, Intent::Replace) else { return false };
        let done = self.sync.replace(self.engine().tables.word(slot.table, slot.index), old, new);
        if done && counts != Counts::default() {
            self.account.add(&self.mm, local, counts);
        }
        done
    }
}
