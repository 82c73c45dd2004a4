//! Metrics: the figures of a simulation that a study can compare with a published column, or with the figures
//! of another policy. Study files refer to metrics by name.

use serde::{Deserialize, Deserializer, de};

mod kernel_build;

use pageset_study::simulate::{RunResult, RunSpec};

use kernel_build::build_time;

/// Makes the enum of metrics from a list. The list also gives each metric its name, its meaning and the
/// expression that computes it.
macro_rules! metrics {
    ($($variant:ident, $name:literal, $meaning:literal, $value:expr;)*) => {
        /// A figure of a simulation's result.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Metric {
            $(#[doc = $meaning] $variant,)*
        }

        impl Metric {
            /// All metrics with their names and meanings.
            pub(crate) const ALL: &[(Self, &str, &str)] = &[$((Self::$variant, $name, $meaning),)*];

            /// Returns the value of this metric for the run `run` with the result `result`.
            pub(crate) fn of(self, run: &RunSpec, result: &RunResult) -> f64 {
                match self {
                    $(Self::$variant => {
                        let value: fn(&RunSpec, &RunResult) -> f64 = $value;
                        value(run, result)
                    })*
                }
            }
        }
    };
}

metrics! {
    Score, "score_per_s", "units of work per second, of all CPUs", |_, result| result.score_per_s;
    TimePerUnit, "time_per_unit_s", "time for a unit of work: 1 / `score_per_s`",
        |_, result| 1.0 / result.score_per_s;
    SpinWaitPercent, "spin_wait_percent",
        "part of the CPUs' busy time spent waiting for zone locks and LRU locks",
        |_, result| result.zone_wait_percent + result.lru_wait_percent;
    ZoneWaitPercent, "zone_wait_percent", "part of the CPUs' busy time spent waiting for zone locks",
        |_, result| result.zone_wait_percent;
    LruWaitPercent, "lru_wait_percent", "part of the CPUs' busy time spent waiting for LRU locks",
        |_, result| result.lru_wait_percent;
    MmapWaitPercent, "mmap_wait_percent",
        "part of the CPUs' busy time spent waiting for the lock of an address space",
        |_, result| result.mmap_wait_percent;
    ZoneLockPercent, "zone_lock_percent",
        "part of the CPUs' busy time spent waiting for zone locks or holding one",
        |_, result| result.zone_lock_percent;
    LruLockPercent, "lru_lock_percent",
        "part of the CPUs' busy time spent waiting for LRU locks or holding one",
        |_, result| result.lru_lock_percent;
    CacheMissPercent, "cache_miss_percent", "misses of the last-level cache, in percent of the references to it",
        |_, result| result.cache_miss_percent;
    BuildTime, "build_ms_per_page",
        "time of a kernel build by the pages that it allocates, if `cgroups` builds share the CPUs and one CPU \
         at a time does 1.1 % of the work",
        |run, result| build_time(run, result);
    BuildSpeed, "build_pages_per_ms", "1 / `build_ms_per_page`", |run, result| 1.0 / build_time(run, result);
    UserTime, "user_ms_per_page", "time of the user's programs, divided by the number of allocated pages",
        |_, result| result.user_ms / result.allocated_pages as f64;
    SystemTime, "system_ms_per_page", "busy time of the kernel, divided by the number of allocated pages",
        |_, result| (result.busy_ms - result.user_ms) / result.allocated_pages as f64;
    FreeHigh, "free_high", "drains because of consecutive high-order frees",
        |_, result| result.free_high as f64;
    AllocZone, "alloc_zone", "pages that refills take from zones", |_, result| result.alloc_zone as f64;
    AllocatedPages, "allocated_pages", "pages obtained, of all orders",
        |_, result| result.allocated_pages as f64;
    ZoneLockAcquisitions, "zone_lock_acquisitions", "times that a zone lock is taken",
        |_, result| result.zone_lock_acquisitions as f64;
    Visits, "visits", "times that a CPU goes to data that all CPUs of a zone share",
        |_, result| result.shared.visits as f64;
    VisitsForWork, "visits_per_million_units", "`visits` for each million units of work done in a second",
        |_, result| 1e6 * result.shared.visits as f64 / result.score_per_s;
    VisitsAndPassed, "visits_and_passed",
        "`visits`, with each line that moved between CPUs counted as a visit too",
        |_, result| {
            let shared = &result.shared;
            (shared.visits - shared.contended_lines + shared.line_transfers) as f64
        };
    Passed, "line_transfers",
        "changes of a pageblock that another CPU had changed last, in this project's own allocator",
        |_, result| result.shared.line_transfers as f64;
    Lines, "lines", "cache lines of this project's own allocator that a CPU fetched from other CPUs",
        |_, result| result.shared.lines() as f64;
    SharedPercent, "shared_percent",
        "`zone_lock_percent`, or for an allocator without locks the part of busy time spent waiting for \
         cache lines of other CPUs",
        |_, result| result.zone_lock_percent + result.shared.line_percent;
    HeldMean, "held_mean",
        "free pages that single CPUs hold, so that other CPUs cannot take them, on average",
        |_, result| result.shared.held_mean;
    HeldAfterTwoTicks, "held_after_two_ticks",
        "free pages that single CPUs hold after two ticks of an idle machine",
        |_, result| result.shared.held_after_two_ticks as f64;
    WholeAtEnd, "whole_at_end", "pageblocks that are free as a whole at the end of the load",
        |_, result| result.shared.whole_at_end as f64;
    ApartAtEnd, "apart_at_end",
        "free pages that are not part of a completely free pageblock, at the end of the load",
        |_, result| result.shared.apart_at_end as f64;
    WholeWhenGone, "whole_when_gone",
        "pageblocks that are free as a whole after all memory of the load was freed",
        |_, result| result.shared.whole_when_gone as f64;
    Fallbacks, "fallbacks", "requests that get memory of another migratetype",
        |_, result| result.shared.fallbacks as f64;
    DrainWaits, "drain_waits", "waits for a zone lock in order to drain a page set",
        |_, result| result.drain_waits as f64;
    DrainWaitTime, "drain_wait_ns", "sum of the times of waits for a zone lock in order to drain a page set",
        |_, result| result.drain_wait_ns as f64;
    DrainWaitMax, "drain_wait_max_ns", "longest wait for a zone lock in order to drain a page set",
        |_, result| result.drain_wait_max_ns as f64;
    DrainWaitMean, "drain_wait_mean_us", "mean wait for a zone lock in order to drain a page set",
        |_, result| result.drain_wait_ns as f64 / result.drain_waits as f64 / 1e3;
    PcpPagesPeak, "pcp_pages_peak",
        "most pages in page sets at once", |_, result| result.pcp_pages_peak as f64;
    PcpPagesIdle, "pcp_pages_idle", "pages in page sets 30 s after the load is gone",
        |_, result| result.pcp_pages_idle as f64;
    UsedPeak, "used_peak", "most pages in use or in page sets at once",
        |_, result| result.shared.used_peak as f64;
    AllocMean, "alloc_mean_ns", "mean time of an allocation", |_, result| result.alloc_mean_ns;
    AllocMedian, "alloc_p50_ns", "median time of an allocation", |_, result| result.alloc_p50_ns;
    AllocP99, "alloc_p99_ns", "time that 99 % of the allocations do not exceed",
        |_, result| result.alloc_p99_ns;
    AllocP999, "alloc_p999_ns", "time that 99.9 % of the allocations do not exceed",
        |_, result| result.alloc_p999_ns;
    AllocMax, "alloc_max_ns", "time of the longest allocation", |_, result| result.alloc_max_ns;
}

/// Tells which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// The larger value is better, as with a score.
    More,
    /// The smaller value is better, as with a time.
    Less,
}

impl Metric {
    /// Returns which of two values of this metric is better. Returns `None` if neither value is better, for
    /// example of the number of pages in page sets.
    pub(crate) fn better(self) -> Option<Better> {
        match self {
            Self::Score | Self::BuildSpeed => Some(Better::More),
            Self::TimePerUnit
            | Self::BuildTime
            | Self::UserTime
            | Self::SystemTime
            | Self::AllocMean
            | Self::AllocMedian
            | Self::AllocP99
            | Self::AllocP999
            | Self::AllocMax => Some(Better::Less),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let typed = String::deserialize(deserializer)?;
        let found = Self::ALL.iter().find(|(_, name, _)| *name == typed);
        found.map(|(metric, ..)| *metric).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(_, name, _)| *name).collect();
            de::Error::custom(format!("no metric is called `{typed}`; use one of {}", names.join(", ")))
        })
    }
}
