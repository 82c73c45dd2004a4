//! Three counters of pages and page tables: the shared counters of an address space, or a task's slot under
//! R4.

use crate::atomic::{AtomicI64, Ordering::Relaxed};
use crate::counts::Counts;
use crate::local::Local;
use crate::mm::Mm;
use crate::world::World;

/// Three adjacent counters. All changes of the counters are `Relaxed`, because no task reads a counter to
/// find out whether other data is ready (ordering E7 of spec §1.3).
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rss: AtomicI64,
    pub(crate) anon_rss: AtomicI64,
    pub(crate) tables: AtomicI64,
}

impl Tally {
    /// Adds the three numbers of `counts` to the counters. If a number is zero, does not write its counter.
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

    /// Adds a task's deltas to the counters, and sets the deltas to zero.
    pub(crate) fn fold<W: World>(&self, mm: &Mm<W>, local: &mut Local) {
        let deltas = core::mem::take(&mut local.deltas);
        if !deltas.is_zero() {
            local.stats.rss_flush += 1;
            self.add(mm, local, deltas);
        }
    }

    /// Adds `counts` to the counters with plain loads and stores. The caller holds the lock of these
    /// counters, or is the only task that writes these counters (a slot of R4).
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
