//! The results of a simulation.

use pageset_blocks::BlockCounters;
use pageset_core::{DrainReason, FrameCensus};
use serde::{Deserialize, Serialize};

use crate::latency::Latency;
use crate::lock::{LockClass, LockUse};
use crate::time::Span;

/// Counts of the measured part of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Units of work that the bodies finished.
    pub score: u64,
    /// Number of single blocks that the bodies requested, plus the number of pages that the bodies got from
    /// bulk allocations.
    pub allocs: u64,
    /// Number of requests that failed.
    pub failures: u64,
    /// Number of pages of all blocks that the bodies obtained.
    pub allocated_pages: u64,
    /// Number of pages of blocks that came directly from a zone, not from a page set.
    pub direct_pages: u64,
    /// Number of blocks that the bodies freed.
    pub frees: u64,
    /// Number of refills of page sets.
    pub refills: u64,
    /// Number of pages that refills took from zones. The patch series of 2023 that introduced automatic
    /// tuning of `high` calls this number *alloc_zone*.
    pub refilled_pages: u64,
    /// Number of drains of page sets for each reason; see [`Counts::drains_because`].
    pub drains: [u64; 5],
    /// Number of pages that drains gave back.
    pub drained_pages: u64,
    /// Counts of accesses to data of the allocator that several CPUs use.
    pub shared: SharedCounts,
    /// Number of times that a kernel would have woken the reclaimer.
    pub kswapd_wakes: u64,
    /// Number of requests that would have had to reclaim memory themselves.
    pub direct_reclaims: u64,
    /// Number of blocks whose metadata the allocator found to be wrong.
    pub bad_pages: u64,
}

/// Counts of accesses to data of the allocator that several CPUs use. Every allocator has these counts, so
/// allocators can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedCounts {
    /// Number of times that a CPU took a zone's lock. In an allocator without locks: number of times that a
    /// CPU changed data that all CPUs of a zone share.
    pub shared_visits: u64,
    /// Number of times that a CPU changed the free frames of a pageblock that another CPU had changed last.
    /// If a recording is played on a whole allocator, changes of a page set that another CPU had changed last
    /// count too.
    pub line_transfers: u64,
    /// The number of `line_transfers` that came less than 10 us after the other CPU's change.
    pub contended_lines: u64,
    /// Number of blocks that came from another migratetype than the request's.
    pub fallbacks: u64,
}

impl From<BlockCounters> for SharedCounts {
    fn from(counters: BlockCounters) -> Self {
        Self {
            shared_visits: counters.shared() as u64,
            line_transfers: counters.line_transfers as u64,
            contended_lines: counters.contended_lines as u64,
            fallbacks: counters.fallbacks as u64,
        }
    }
}

/// Returns the index of a reason in [`Counts::drains`].
pub(crate) const fn drain_index(reason: DrainReason) -> usize {
    match reason {
        DrainReason::High => 0,
        DrainReason::FreeHigh => 1,
        DrainReason::Decay => 2,
        DrainReason::Remote => 3,
        DrainReason::Demand => 4,
    }
}

impl Counts {
    /// Returns the number of drains for one reason.
    #[must_use]
    pub const fn drains_because(&self, reason: DrainReason) -> u64 {
        self.drains[drain_index(reason)]
    }

    /// Returns the number of drains because of consecutive high-order frees, called *free_high* in the patch
    /// series of 2023.
    #[must_use]
    pub const fn free_high(&self) -> u64 {
        self.drains_because(DrainReason::FreeHigh)
    }
}

/// Number of cache lines that CPUs touched, by the place of the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Number of lines found in the core's own caches.
    pub near: u64,
    /// Number of lines found in the last-level cache.
    pub shared: u64,
    /// Number of lines found in the own caches of another core under the same last-level cache.
    pub other_core: u64,
    /// Number of lines found under another last-level cache: of another node, or of another group of cores.
    pub other_cache: u64,
    /// Number of lines found in memory.
    pub memory: u64,
}

impl CacheCounts {
    /// Returns the misses of the last-level cache, divided by the references to the last-level cache. As in
    /// the counters of processors, a reference is a line that the core's own caches do not have. A miss is a
    /// line that comes neither from the last-level cache nor from a core under it. The result is 0 if there
    /// was no reference.
    #[must_use]
    pub fn miss_rate(&self) -> f64 {
        let misses = self.other_cache + self.memory;
        let references = self.shared + self.other_core + misses;
        if references == 0 { 0.0 } else { misses as f64 / references as f64 }
    }
}

/// Cache lines that CPUs fetched from other CPUs, in an allocator without locks. All counts are 0 for Linux's
/// allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineTraffic {
    /// Number of times that a CPU fetched a line that other CPUs had, for each table of
    /// [`LineTraffic::TABLES`]. A CPU fetches a line to read it if another CPU has written the line since
    /// this CPU had it last. A CPU fetches a line to write it if other CPUs have read or written the line.
    pub passes: [u64; Self::TABLES.len()],
    /// Number of times that a CPU waited for a line because the line was still on its way to another CPU.
    pub contended: u64,
    /// The time of all fetches of cache lines from other CPUs, in picoseconds. The time of a fetch begins
    /// when the CPU asks for the line and ends when the line arrives.
    pub(crate) pass_ps: u64,
}

impl LineTraffic {
    /// The names of the allocator's tables in results. In the order of the names, the tables hold the frames
    /// of pageblocks, the states of pageblocks, data of one CPU, shared data of a zone, sets of pageblocks,
    /// and data that few pageblocks need.
    pub const TABLES: [&'static str; 6] = ["rows", "states", "cpu_share", "zones", "index", "bad_bits"];

    /// Number of lines that CPUs fetched from other CPUs.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.passes.iter().sum()
    }

    /// Counts a line that arrived `pass_ps` picoseconds after the CPU asked for it. `wait_ps` is the part of
    /// `pass_ps` during which the CPU waited for other CPUs.
    pub(crate) fn passed(&mut self, table: usize, pass_ps: u64, wait_ps: u64) {
        self.passes[table] += 1;
        self.contended += u64::from(wait_ps > 0);
        self.pass_ps += pass_ps;
    }
}

/// Use of memory in pages. The fields use the terms of [`FrameUsage`](pageset_core::FrameUsage).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryUse {
    /// Average number of free pages that CPUs held for themselves during the measured time. Other CPUs cannot
    /// take pages that a CPU holds for itself.
    pub held_mean: f64,
    /// Largest number of free pages, over all samples, that all CPUs together held for themselves.
    pub held_peak: u64,
    /// Number of free pages that all CPUs together held for themselves at the end of the measured time.
    pub held_at_end: u64,
    /// Largest number of pages, over all samples, that were in use or held by CPUs. Tools such as `free`
    /// report pages that CPUs hold as used memory.
    pub used_peak: u64,
    /// Average number of free pages that were reserved for one CPU during the measured time. Other CPUs could
    /// take reserved pages if they found no other pages.
    pub at_hand_mean: f64,
    /// Number of completely free pageblocks at the end of the measured time.
    pub whole_at_end: u64,
    /// Number of free pages outside completely free pageblocks, at the end of the measured time. A free
    /// pageblock that one CPU has reserved counts as completely free. Pages in page sets never count as part
    /// of a free pageblock.
    pub apart_at_end: u64,
    /// Number of free pages that CPUs held after all bodies had ended and each CPU had ticked twice.
    pub held_after_two_ticks: u64,
    /// Number of completely free pageblocks at the end of the idle time that follows the last body.
    pub whole_when_gone: u64,
}

/// A simulation's result. All times of an outcome are virtual times.
#[derive(Clone, Debug)]
pub struct SimulationOutcome {
    /// The machine's name.
    pub machine: String,
    /// Name of the allocator's policy. If the allocator is not Linux's, name of the allocator.
    pub policy: &'static str,
    /// The number of simulated CPUs.
    pub cpus: u32,
    /// The number of CPUs that ran a body (*workers*).
    pub workers: u32,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Hash of all events until the end of the measured time, in their order. Equal input gives an equal
    /// hash.
    pub digest: u64,
    /// Length of the measured time: from the end of the warm-up until the deadline, or until the last body
    /// ended.
    pub measured: Span,
    /// Time that each worker was busy during the measured time. Waiting for spin locks counts as busy time.
    pub busy: Vec<Span>,
    /// Time that each worker was idle during the measured time.
    pub idle: Vec<Span>,
    /// The workers' busy time in the user program
    /// ([`VirtualCpu::advance_in_user_mode`](crate::VirtualCpu::advance_in_user_mode)). The rest of the busy
    /// time is kernel time.
    pub user: Span,
    /// Counts of the events of the measured time.
    pub counts: Counts,
    /// Locks, by class; see [`SimulationOutcome::lock`].
    pub locks: [LockUse; LockClass::COUNT],
    /// The cost of zone locks that CPUs took to drain a page set. The cost of the class [`LockClass::Zone`]
    /// includes the cost of drains.
    pub drain_locks: LockUse,
    /// Cache lines that CPUs touched.
    pub caches: CacheCounts,
    /// Cache lines that moved between CPUs, in an allocator without locks.
    pub lines: LineTraffic,
    /// Use of memory during the run.
    pub memory: MemoryUse,
    /// How long each allocation took.
    pub alloc: Latency,
    /// For each allocation, the time that the CPU waited for a lock that another CPU held to drain a page
    /// set.
    pub behind_drains: Latency,
    /// How long each free of a single block took. Calls that free a list of blocks are not included.
    pub free: Latency,
    /// Largest number of pages that were in all page sets together at one moment of the measured time.
    pub cached_peak: u64,
    /// Number of pages that were in page sets at the end of the measured time.
    pub cached_at_end: u64,
    /// Number of pages that were in page sets at the end of the idle time after the last body.
    /// [`Builder::idle_after`](crate::Builder::idle_after) sets the idle time.
    pub cached_after_idle: u64,
    /// Numbers of free, cached, allocated and leaked frames after the run, counted by the allocator's
    /// `validate`.
    pub census: FrameCensus,
    /// Workers that never ended, because these workers waited and no running worker was left that could wake
    /// them. The pages that these workers held were never freed.
    pub stuck: Vec<pageset_core::CpuId>,
}

impl SimulationOutcome {
    /// The cost of all locks of one class.
    #[must_use]
    pub const fn lock(&self, class: LockClass) -> &LockUse {
        &self.locks[class as usize]
    }

    /// Units of work per virtual second.
    #[must_use]
    pub fn score_per_second(&self) -> f64 {
        let seconds = self.measured.as_secs_f64();
        if seconds == 0.0 { 0.0 } else { self.counts.score as f64 / seconds }
    }

    /// Busy time of all workers together.
    #[must_use]
    pub fn busy_total(&self) -> Span {
        self.busy.iter().copied().sum()
    }

    /// Returns the percentage of the workers' busy time that the workers waited for locks of a class.
    #[must_use]
    pub fn lock_wait_pct(&self, class: LockClass) -> f64 {
        self.share_pct(self.lock(class).wait_ps)
    }

    /// Returns the percentage of the workers' busy time that the workers waited for zone locks or held
    /// zone locks. The patch series of 2023 calls this percentage *zone lock%*.
    #[must_use]
    pub fn zone_lock_pct(&self) -> f64 {
        let zone = self.lock(LockClass::Zone);
        self.share_pct(zone.wait_ps + zone.hold_ps)
    }

    /// Returns the percentage of the workers' busy time that the workers waited for cache lines of other
    /// CPUs. The percentage is 0 for Linux's allocator.
    #[must_use]
    pub fn line_pass_pct(&self) -> f64 {
        self.share_pct(self.lines.pass_ps)
    }

    /// Returns the percentage of the workers' busy time that the workers waited for locks of LRU lists or
    /// held such locks.
    #[must_use]
    pub fn lru_lock_pct(&self) -> f64 {
        let lru = self.lock(LockClass::Lru);
        self.share_pct(lru.wait_ps + lru.hold_ps)
    }

    fn share_pct(&self, ps: u64) -> f64 {
        let busy = self.busy_total().0;
        if busy == 0 { 0.0 } else { 100.0 * ps as f64 / busy as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_the_cores_own_caches_is_no_reference_and_one_of_a_neighbour_no_miss() {
        let counts = CacheCounts { near: 1000, shared: 5, other_core: 3, other_cache: 1, memory: 1 };
        assert_eq!(counts.miss_rate(), 0.2);
        assert_eq!(CacheCounts { near: 7, ..CacheCounts::default() }.miss_rate(), 0.0);
    }
}
