//! How changes to page-table words are kept apart (spec §1.4).

use crate::atomic::AtomicU64;
use crate::axis::axis;
use crate::held::Held;
use crate::local::Local;
use crate::mm::Mm;
use crate::pte::Pte;
use crate::table::Slot;
use crate::world::World;

axis! { ($)
    /// How page-table words are changed.
    TableSync / AnySync;
    P0 = p0, "one lock over the page table, taken twice per fault (Linux 2.6.13)";
    P0n = p0n, "one lock over the page table, taken once per fault (narrowed)";
    P1 = p1, "one lock per leaf table (Hugh Dickins, 2005; Linux today)";
    P2 = p2, "compare-exchange of the word, no lock (Christoph Lameter, 2004)";
    P3 = p3, "one lock per table of any level, unlinked tables marked (CortenMM's advanced protocol)";
}

/// Somebody took the table out of the tree meanwhile: start again from the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stale;

/// Why a word is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// An empty word gets a page or a table; or a word loses its page, or gets other rights.
    Fill,
    /// Another page replaces a present one: a compare-exchange of the word alone cannot show that the old page's
    /// contents did not change (spec §1.4.3).
    Replace,
}

/// One way to keep changes apart.
pub(crate) trait PteSync {
    fn new(tasks: u32) -> Self;

    /// What is held while a fault walks to its word and reads it first. Most strategies read without a lock.
    fn before_walk<'a, W: World>(&self, _: &'a Mm<W>, _: &mut Local) -> Held<'a, W> {
        Held::Nothing
    }

    /// Gets the right to change a word: takes the lock that covers it, if there is one, and makes sure that its table
    /// is still in the tree.
    fn hold<'a, W: World>(
        &self,
        mm: &'a Mm<W>,
        local: &mut Local,
        slot: &Slot,
        intent: Intent,
    ) -> Result<Held<'a, W>, Stale>;

    /// Gets the right to change a table's words while the word that names the table is held already: nothing more,
    /// unless the table has a lock of its own.
    fn hold_below<'a, W: World>(&self, _: &'a Mm<W>, _: &mut Local, _: &Slot) -> Held<'a, W> {
        Held::Nothing
    }

    /// Puts `new` where `old` is, with what `hold` gave. False if something else is there. Under a lock that every
    /// writer takes: looks, then stores. The store is a Release (E1, E3), because walkers read without the lock.
    #[inline]
    fn replace(&self, word: &AtomicU64, old: Pte, new: Pte) -> bool {
        use crate::atomic::Ordering::{Acquire, Release};
        let unchanged = word.load(Acquire) == old.bits();
        if unchanged {
            word.store(new.bits(), Release);
        }
        unchanged
    }

    /// Whether a fault that has acquired the word checks again that its area is unchanged. That replaces any
    /// lock on areas.
    fn looks_again(&self) -> bool {
        false
    }
}

impl AnySync {
    #[inline]
    pub(crate) fn before_walk<'a, W: World>(&self, mm: &'a Mm<W>, local: &mut Local) -> Held<'a, W> {
        each!(self, sync => sync.before_walk(mm, local))
    }

    #[inline]
    pub(crate) fn hold<'a, W: World>(
        &self,
        mm: &'a Mm<W>,
        local: &mut Local,
        slot: &Slot,
        intent: Intent,
    ) -> Result<Held<'a, W>, Stale> {
        each!(self, sync => sync.hold(mm, local, slot, intent))
    }

    pub(crate) fn hold_below<'a, W: World>(
        &self,
        mm: &'a Mm<W>,
        local: &mut Local,
        slot: &Slot,
    ) -> Held<'a, W> {
        each!(self, sync => sync.hold_below(mm, local, slot))
    }

    #[inline]
    pub(crate) fn replace(&self, word: &AtomicU64, old: Pte, new: Pte) -> bool {
        debug_assert!(old.may_become(new), "{old:?} may not become {new:?}");
        each!(self, sync => sync.replace(word, old, new))
    }

    #[inline]
    pub(crate) fn looks_again(&self) -> bool {
        each!(self, sync => sync.looks_again())
    }
}
