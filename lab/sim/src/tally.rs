//! Counters of the measured part of a simulation.

use crate::latency::Latency;
use crate::lock::LockUse;
use crate::outcome::{CacheCounts, Counts, LineTraffic};

/// Counters of a simulation; [`restart`](Self::restart) sets them to zero when the measured part begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    pub(crate) locks: [LockUse; crate::lock::LockClass::COUNT],
    /// The cost of zone locks that CPUs took to drain a page set. The cost of the zone locks in `locks`
    /// includes the cost in `drains`.
    pub(crate) drains: LockUse,
    /// Time that bodies spent in the user program, in picoseconds.
    pub(crate) user_ps: u64,
    pub(crate) caches: CacheCounts,
    pub(crate) lines: LineTraffic,
    pub(crate) alloc: Latency,
    /// For each allocation, the time that the CPU waited for another CPU's drain.
    pub(crate) behind_drains: Latency,
    pub(crate) free: Latency,
    /// Number of pages in page sets now. `cached_peak` is the largest value of `cached` so far.
    pub(crate) cached: i64,
    pub(crate) cached_peak: i64,
}

impl Tally {
    /// Adds `pages` to the number of pages in page sets.
    #[inline]
    pub(crate) fn cache_pages(&mut self, pages: i64) {
        self.cached += pages;
        self.cached_peak = self.cached_peak.max(self.cached);
    }

    /// Sets the counters to zero, except the number of pages in page sets.
    pub(crate) fn restart(&mut self) {
        *self = Self { cached: self.cached, cached_peak: self.cached, ..Self::default() };
    }
}
