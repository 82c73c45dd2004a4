//! The figures of one simulation.

use std::collections::BTreeMap;

use pageset_sim::{LineTraffic, LockClass, SimulationOutcome};
use serde::{Deserialize, Serialize};

use super::spec::Resolved;
use crate::load::Played;

/// The figures of one simulation. All times are virtual times. Unless a field says otherwise, counts are of
/// the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Units of work per second, of all CPUs together.
    pub score_per_s: f64,
    /// Name of a unit of work.
    pub unit: String,
    /// Percentage of the CPUs' busy time that CPUs waited for a zone's lock or held a zone's lock.
    pub zone_lock_percent: f64,
    /// Percentage of the CPUs' busy time that CPUs waited for a zone's lock.
    pub zone_wait_percent: f64,
    /// Percentage of the CPUs' busy time that CPUs waited for an LRU lock or held an LRU lock.
    pub lru_lock_percent: f64,
    /// Percentage of the CPUs' busy time that CPUs waited for an LRU lock.
    pub lru_wait_percent: f64,
    /// Percentage of the CPUs' busy time that CPUs waited for the lock of an address space.
    pub mmap_wait_percent: f64,
    /// Time that CPUs were busy, summed over all CPUs, in milliseconds.
    pub busy_ms: f64,
    /// The part of the busy time that CPUs spent in the user program, in milliseconds. `user_ms` is 0 for
    /// workloads that do not separate user time from kernel time. The workloads kbuild, stress-vm, ebizzy,
    /// pigz, oltp and purger separate user time.
    pub user_ms: f64,
    /// Number of times that a CPU waited for a zone's lock in order to drain a page set.
    pub drain_waits: u64,
    /// Sum of the times that CPUs waited for a zone's lock in order to drain a page set, in nanoseconds.
    pub drain_wait_ns: u64,
    /// The longest time that a CPU waited for a zone's lock in order to drain a page set, in nanoseconds.
    pub drain_wait_max_ns: u64,
    /// Number of drains because of consecutive high-order frees.
    pub free_high: u64,
    /// Number of pages that refills took from zones.
    pub alloc_zone: u64,
    /// Number of pages in all blocks that the workload allocated.
    pub allocated_pages: u64,
    /// Number of requests that failed.
    pub failures: u64,
    /// Number of times that a zone's lock was taken.
    pub zone_lock_acquisitions: u64,
    /// Largest number of pages in page sets at one time. In an allocator without page sets, the largest
    /// number of free pages that CPUs held for themselves.
    pub pcp_pages_peak: u64,
    /// Number of pages in page sets after 30 idle seconds. In an allocator without page sets, the number of
    /// free pages that CPUs held for themselves.
    pub pcp_pages_idle: u64,
    /// Figures that all allocators have, with or without page sets.
    #[serde(default)]
    pub shared: SharedUse,
    /// Misses of the last-level cache, in percent of the references to the last-level cache.
    pub cache_miss_percent: f64,
    /// Median time of an allocation.
    pub alloc_p50_ns: f64,
    /// The 99th percentile of the time of an allocation.
    pub alloc_p99_ns: f64,
    /// The 99.9th percentile of the time of an allocation.
    pub alloc_p999_ns: f64,
    /// Time of the longest allocation.
    pub alloc_max_ns: f64,
    /// Average time of an allocation.
    pub alloc_mean_ns: f64,
    /// The average time during an allocation that the CPU waited for other CPUs' drains, in nanoseconds.
    pub alloc_behind_drains_ns: f64,
    /// Number of CPUs that the workload used.
    pub workers: u32,
    /// Counts of the recorded events that the run repeated, if the workload was a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<Played>,
    /// Hash of all events of the simulation, in their order.
    pub digest: String,
}

/// Counts of accesses to data that several CPUs use, and the use of memory. Every allocator has these
/// figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedUse {
    /// Number of times that a CPU took a zone's lock. In an allocator without locks, the number of times that
    /// a CPU changed data that all CPUs of a zone share, plus `contended_lines`.
    pub visits: u64,
    /// Number of times that a CPU changed the free frames of a pageblock that another CPU had changed last,
    /// at any time before. `line_transfers` is 0 for Linux's allocator.
    pub line_transfers: u64,
    /// The number of `line_transfers` that came less than 10 us after the other CPU's change.
    pub contended_lines: u64,
    /// For each table of an allocator without locks, the number of cache lines that CPUs fetched from other
    /// CPUs. `line_passes` is empty for Linux's allocator.
    pub line_passes: BTreeMap<String, u64>,
    /// Number of times that a CPU waited for a line because the line was still moving to another CPU.
    pub line_waits: u64,
    /// Percentage of the CPUs' busy time that CPUs fetched cache lines from other CPUs.
    pub line_percent: f64,
    /// Number of requests that got memory of another migratetype.
    pub fallbacks: u64,
    /// Average number of free pages that CPUs held for themselves during the measured time. Other CPUs cannot
    /// take pages that a CPU holds for itself.
    pub held_mean: f64,
    /// Largest number of pages that were in use or held by CPUs. A tool such as `free` reports both kinds of
    /// pages as used memory.
    #[serde(default)]
    pub used_peak: u64,
    /// Number of free pages that CPUs held for themselves after two ticks of the idle machine.
    pub held_after_two_ticks: u64,
    /// Average number of free pages that were reserved for one CPU during the measured time. Other CPUs could
    /// take reserved pages if they found no other pages.
    pub at_hand_mean: f64,
    /// Number of completely free pageblocks at the end of the measured time.
    pub whole_at_end: u64,
    /// Number of free pages outside completely free pageblocks at the end of the measured time.
    pub apart_at_end: u64,
    /// Number of completely free pageblocks after the workload has ended and 30 idle seconds have passed.
    pub whole_when_gone: u64,
}

impl SharedUse {
    /// Returns the number of cache lines that CPUs fetched from other CPUs, over all tables.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.line_passes.values().sum()
    }

    fn new(outcome: &SimulationOutcome) -> Self {
        let (lines, memory, shared) = (outcome.lines, outcome.memory, outcome.counts.shared);
        let passes = LineTraffic::TABLES.into_iter().zip(lines.passes).filter(|(_, passes)| *passes > 0);
        Self {
            visits: shared.shared_visits + shared.contended_lines,
            line_transfers: shared.line_transfers,
            contended_lines: shared.contended_lines,
            line_passes: passes.map(|(table, passes)| (table.to_owned(), passes)).collect(),
            line_waits: lines.contended,
            line_percent: outcome.line_pass_pct(),
            fallbacks: shared.fallbacks,
            held_mean: memory.held_mean,
            used_peak: memory.used_peak,
            held_after_two_ticks: memory.held_after_two_ticks,
            at_hand_mean: memory.at_hand_mean,
            whole_at_end: memory.whole_at_end,
            apart_at_end: memory.apart_at_end,
            whole_when_gone: memory.whole_when_gone,
        }
    }
}

impl RunResult {
    pub(super) fn new(outcome: &SimulationOutcome, resolved: &Resolved) -> Self {
        let busy = outcome.busy_total().as_ns_f64();
        let percent = |ns: u64| if busy > 0.0 { 100.0 * ns as f64 / busy } else { 0.0 };
        let wait = |class| percent(outcome.lock(class).wait_ns());
        let held = |class| percent(outcome.lock(class).hold_ns());
        let (counts, alloc) = (&outcome.counts, &outcome.alloc);
        Self {
            score_per_s: outcome.score_per_second(),
            unit: resolved.load.unit().to_owned(),
            zone_lock_percent: wait(LockClass::Zone) + held(LockClass::Zone),
            zone_wait_percent: wait(LockClass::Zone),
            lru_lock_percent: wait(LockClass::Lru) + held(LockClass::Lru),
            lru_wait_percent: wait(LockClass::Lru),
            mmap_wait_percent: wait(LockClass::Mmap),
            busy_ms: outcome.busy_total().as_ns_f64() / 1e6,
            user_ms: outcome.user.as_ns_f64() / 1e6,
            drain_waits: outcome.drain_locks.contended,
            drain_wait_ns: outcome.drain_locks.wait_ns(),
            drain_wait_max_ns: outcome.drain_locks.longest_wait_ns(),
            free_high: counts.free_high(),
            alloc_zone: counts.refilled_pages,
            allocated_pages: counts.allocated_pages,
            failures: counts.failures,
            zone_lock_acquisitions: outcome.lock(LockClass::Zone).acquisitions,
            pcp_pages_peak: outcome.cached_peak,
            pcp_pages_idle: outcome.cached_after_idle,
            shared: SharedUse::new(outcome),
            cache_miss_percent: 100.0 * outcome.caches.miss_rate(),
            alloc_p50_ns: alloc.percentile_ns(0.5),
            alloc_p99_ns: alloc.percentile_ns(0.99),
            alloc_p999_ns: alloc.percentile_ns(0.999),
            alloc_max_ns: alloc.max_ns(),
            alloc_mean_ns: alloc.mean_ns(),
            alloc_behind_drains_ns: outcome.behind_drains.mean_ns(),
            workers: outcome.workers,
            played: resolved.load.played(),
            digest: format!("{:016x}", outcome.digest),
        }
    }
}
