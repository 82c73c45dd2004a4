//! Part P of a strategy: how tasks change page-table words without disturbing each other (spec §1.4).

use crate::atomic::AtomicU64;
use crate::axis::axis;
use crate::held::Held;
use crate::local::Local;
use crate::mm::Mm;
use crate::pte::Pte;
use crate::table::Slot;
use crate::world::World;

axis! { ($)
    /// How a task changes a page-table word.
    TableSync / AnySync;
    P0 = p0, "one lock over the page table, taken twice per fault (Linux 2.6.13)";
    P0n = p0n, "one lock over the page table, taken once per fault";
    P1 = p1, "one lock per leaf table (Hugh Dickins, 2005; Linux today)";
    P2 = p2, "compare-exchange of the word, no lock to fill it (Christoph Lameter, 2004)";
    P3 = p3, "one lock per table of any level, and marks on tables that left the tree (CortenMM's advanced protocol)";
}

/// The error if another task took a word's table out of the page-table tree. The fault must start again from
/// the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stale;

/// The kind of change of a page-table word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// A fault puts a page or a table into a word that maps nothing or the zero page. `Fill` also covers a
    /// writer that removes a page, rights or an empty table from a word.
    Fill,
    /// Any other change of a word. For example, a copy-on-write replaces the page that the word maps. If the
    /// old page changes during the copy, the word stays the same, and a compare-exchange of the word would
    /// not notice the change (spec §1.4.3).
    Replace,
}

/// A value of part P of a strategy changes page-table words.
pub(crate) trait PteSync {
    fn new(tasks: u32) -> Self;

    /// Takes the lock that a fault holds while it walks to its word and reads the word. Only P0 has a lock
    /// for the walk.
    fn before_walk<'a, W: World>(&self, _: &'a Mm<W>, _: &mut Local) -> Held<'a, W> {
        Held::Nothing
    }

    /// Gets the right to change a word. Takes the lock that covers the word, if the strategy needs a lock for
    /// this change. Except under P2, also checks that the word's table is still in the tree.
    fn hold<'a, W: World>(
        &self,
        mm: &'a Mm<W>,
        local: &mut Local,
        slot: &Slot,
        intent: Intent,
    ) -> Result<Held<'a, W>, Stale>;

    /// Gets the right to change a table's words. The caller already has the right to change the word that
    /// names the table. Takes a lock only if the strategy has a lock for this table (P1, P3).
    fn hold_below<'a, W: World>(&self, _: &'a Mm<W>, _: &mut Local, _: &Slot) -> Held<'a, W> {
        Held::Nothing
    }

    /// Changes the word from `old` to `new`. Returns `false` if the word is not `old`. The caller has called
    /// `hold` to get the right to change the word.
    ///
    /// In this default implementation, `hold` has taken a lock, so no other task changes the word between the
    /// load and the store. Other tasks read the word without the lock, so the store is `Release` (orderings
    /// E1 and E3).
    #[inline]
    fn replace(&self, word: &AtomicU64, old: Pte, new: Pte) -> bool {
        use crate::atomic::Ordering::{Acquire, Release};
        let unchanged = word.load(Acquire) == old.bits();
        if unchanged {
            word.store(new.bits(), Release);
        }
        unchanged
    }

    /// Whether a fault takes the lock that covers its word, and then checks its area again. With the second
    /// check of its area, a fault needs no lock on areas.
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
