//! Three counters that all CPUs change, and the folding of a task's deltas into them.

use crate::atomic::{AtomicI64, Ordering::Relaxed};
use crate::counts::Counts;
use crate::local::Local;
use crate::space::AddressSpace;
use crate::world::World;

/// Counters on one line. All changes are Relaxed: no data depends on them (E7).
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rss: AtomicI64,
    pub(crate) anon_rss: AtomicI64,
    pub(crate) tables: AtomicI64,
}

impl Tally {
    /// Adds each number that is not zero.
    #[inline]
    pub(crate) fn add<W: World>(&self, space: &AddressSpace<W>, local: &Local, counts: Counts) {
        let add = |counter: &AtomicI64, more: i64| {
            if more != 0 {
                space.world().shares(local.cpu, space.rss_line());
                counter.fetch_add(more, Relaxed);
            }
        };
        add(&self.rss, counts.rss);
        add(&self.anon_rss, counts.anon_rss);
        add(&self.tables, counts.tables);
    }

    /// Adds with loads and stores, under a lock that everybody takes.
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

/// Takes a task's deltas and lets `add` put them where they belong.
pub(crate) fn fold_deltas(local: &mut Local, add: impl FnOnce(&Local, Counts)) {
    let deltas = core::mem::take(&mut local.deltas);
    if !deltas.is_zero() {
        local.stats.rss_flush += 1;
        add(local, deltas);
    }
}
