//! Three counters: the shared counters of an address space, or a task's slot under R4.

use crate::atomic::{AtomicI64, Ordering::Relaxed};
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

/// Counters on one cache line. All changes are `Relaxed`, because no other data is published through the
/// counters (ordering E7 of spec §1.3).
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rss: AtomicI64,
    pub(crate) anon_rss: AtomicI64,
    pub(crate) tables: AtomicI64,
}

impl Tally {
    /// Adds the three numbers to the counters, but does not write a counter if its number is zero.
    #[inline]
    pub(crate) fn add<W: World>(&self, mm: &Mm<W>, local: &Local, counts: Counts) {
        let add = |counter: &AtomicI64, more: i64| {
            if more != 0 {
                mm.world().shares(local.cpu, mm.rss_line());
                counter.fetch_add(more, Relaxed);
            }
        };
        add(&self.rss, counts.rss);
        add(&self.anon_rss, counts.anon_rss);
        add(&self.tables, counts.tables);
    }

    /// Adds a task's deltas and sets them to zero.
    pub(crate) fn fold<W: World>(&self, mm: &Mm<W>, local: &mut Local) {
        let deltas = core::mem::take(&mut local.deltas);
        if !deltas.is_zero() {
            local.stats.rss_flush += 1;
            self.add(mm, local, deltas);
        }
    }

    /// Adds with plain loads and stores. The caller holds the lock of these counters, or only its task writes
    /// these counters (a slot of R4).
    #[inline]
    pub(crate) fn add_locked(&self, counts: Counts) {
        let add = |counter: &AtomicI64, more: i64| counter.store(counter.load(Relaxed) + more, Relaxed);
        add(&self.rss, counts.rss);
        add(&self.anon_rss, counts.anon_rss);
        add(&self.tables, counts.tables);
    }

    pub(crate) fn load(&self) -> Counts {
        Counts {
            rss: self.rss.load(Relaxed),
            anon_rss: self.anon_rss.load(Relaxed),
            tables: self.tables.load(Relaxed),
        }
    }
}
