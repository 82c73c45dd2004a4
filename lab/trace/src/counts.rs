//! Counts that the kernel makes, for recordings without events.

use serde::{Deserialize, Serialize};

use crate::call_sites::LockName;

/// Hits of tracepoints, zone visits and waits on all recorded CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// The time during which hits were counted, in nanoseconds.
    pub elapsed_ns: u64,
    /// Number of CPUs that were counted.
    pub cpus: u32,
    /// The counted tracepoints. A tracepoint that the kernel does not have is left out.
    pub tracepoints: Vec<TracepointCount>,
    /// Visits to zones: refills and drains of page sets, and blocks that bypassed page sets. `None` if the
    /// number is not known.
    #[serde(default)]
    pub visits: Option<HitEstimate>,
    /// The number of visits in the segments of time when each hit was recorded with its time.
    #[serde(default)]
    pub visits_counted: u64,
    /// Total length of the segments of `visits_counted`, in nanoseconds, averaged over the CPUs.
    #[serde(default)]
    pub visits_counted_ns: u64,
    /// Waits for zone locks. `None` if waits are not known.
    #[serde(default)]
    pub zone_waits: Option<ZoneWaits>,
    /// The activity of each task, most visits first. The list is empty if tasks were not distinguished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<CountedTask>,
    /// Visits and waits by call site. The list is empty if no call chain was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<CountedSite>,
    /// Spinning locks that CPUs waited for, without zone locks. `None` if waits were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Vec<CountedLock>>,
    /// Whether the tasks of the recorded command are known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_command_known: bool,
}

/// Activity of one task, which is identified by its number. If names were requested,
/// [`TraceInfo::tasks`](crate::TraceInfo::tasks) has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedTask {
    /// The task's number. `None` stands for interrupts and for all tasks that are not listed.
    pub tid: Option<u32>,
    /// Whether the task belongs to the recorded command, to the recorder, or to neither.
    pub party: Party,
    /// The task's part of [`Counts::visits`]. Visits of an interrupt count for the interrupted task.
    pub visits: u64,
    /// The task's part of [`Counts::zone_waits`].
    pub waits: u64,
    /// Time of `waits`, in nanoseconds.
    pub wait_ns: u64,
}

/// Activity of a call site: a function that requested or freed pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedSite {
    /// The function's name. `None` stands for call chains that do not show the function.
    pub function: Option<String>,
    /// The call site's part of [`Counts::visits`]. `None` if visits have no call chains.
    pub visits: Option<u64>,
    /// The call site's part of [`Counts::zone_waits`]. `None` if waits were not recorded.
    pub waits: Option<u64>,
    /// Time of `waits`, in nanoseconds.
    pub wait_ns: Option<u64>,
}

/// Waits for a lock that is not a zone lock, or for several such locks with the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedLock {
    /// The lock's name.
    pub lock: LockName,
    /// Number of waits.
    pub waits: u64,
    /// Time of `waits`, in nanoseconds.
    pub wait_ns: u64,
}

/// The origin of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The task belongs to the recorded command.
    Command,
    /// The task belongs to the recorder.
    Recorder,
    /// The task belongs neither to the command nor to the recorder, or its origin is not known.
    Rest,
}

/// Waits for zone locks on all CPUs. Each wait was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneWaits {
    /// Number of waits.
    pub waits: u64,
    /// Time of `waits`, in nanoseconds.
    pub wait_ns: u64,
    /// Number of waits for spinning locks whose call chain does not show the lock.
    pub unknown_waits: u64,
    /// Time of the waits in `unknown_waits`, in nanoseconds.
    pub unknown_wait_ns: u64,
}

/// Hits of one tracepoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracepointCount {
    /// Group and name of the tracepoint, as a path below tracefs' `events`.
    pub name: String,
    /// Number of hits that were counted.
    pub counted: u64,
    /// How long the tracepoint was switched on, in nanoseconds, averaged over the CPUs.
    pub counted_ns: u64,
    /// Estimate of the hits in the whole time. `None` if the tracepoint was switched on too rarely for an
    /// estimate.
    pub hits: Option<HitEstimate>,
}

impl TracepointCount {
    /// A block leaves a zone.
    pub const ZONE_LOCKED: &str = "kmem/mm_page_alloc_zone_locked";
    /// A page set gives a block back to its zone.
    pub const PCPU_DRAIN: &str = "kmem/mm_page_pcpu_drain";
    /// A CPU begins to wait for a lock. Only spinning locks are counted.
    pub const CONTENTION: &str = "lock/contention_begin";
    /// The background reclaimer is woken.
    pub const KSWAPD_WAKE: &str = "vmscan/mm_vmscan_kswapd_wake";
    /// A task begins to reclaim memory for itself.
    pub const DIRECT_RECLAIM: &str = "vmscan/mm_vmscan_direct_reclaim_begin";
}

/// Estimate of the number of hits in the whole time, with its 95 % confidence interval. The three numbers are
/// equal if all hits were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HitEstimate {
    /// The lower end of the interval.
    pub low: u64,
    /// The estimate.
    pub hits: u64,
    /// The upper end of the interval.
    pub high: u64,
}

impl HitEstimate {
    /// Makes an estimate for a tracepoint with every hit counted.
    #[must_use]
    pub const fn exact(hits: u64) -> Self {
        Self { low: hits, hits, high: hits }
    }

    /// Whether every hit was counted, so that the number is exact.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.low == self.high
    }
}

impl Counts {
    /// Hits of the tracepoint called `name`. `None` if the kernel does not have the tracepoint, or if the
    /// tracepoint was switched on too rarely.
    #[must_use]
    pub fn hits(&self, name: &str) -> Option<HitEstimate> {
        self.tracepoints.iter().find(|tracepoint| tracepoint.name == name)?.hits
    }

    /// The number of blocks that left a zone or went back to a zone. `None` if this number is not known.
    #[must_use]
    pub fn moved_blocks(&self) -> Option<HitEstimate> {
        let [out, back] =
            [TracepointCount::ZONE_LOCKED, TracepointCount::PCPU_DRAIN].map(|name| self.hits(name));
        let (out, back) = out.zip(back)?;
        Some(HitEstimate {
            low: out.low.saturating_add(back.low),
            hits: out.hits.saturating_add(back.hits),
            high: out.high.saturating_add(back.high),
        })
    }

    /// The number of zone visits, limited to the largest number of blocks that may have moved. `None` if the
    /// number of visits or the number of moved blocks is not known.
    #[must_use]
    pub fn zone_visits(&self) -> Option<HitEstimate> {
        let (visits, most) = (self.visits?, self.moved_blocks()?.high);
        let within = |hits: u64| hits.min(most);
        Some(HitEstimate { low: within(visits.low), hits: within(visits.hits), high: within(visits.high) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_json_and_are_found_by_name() {
        let estimate = HitEstimate { low: 1, hits: 2, high: 3 };
        let count = |name: &str, hits| TracepointCount { name: name.into(), counted: 1, counted_ns: 5, hits };
        let counts = Counts {
            elapsed_ns: 10,
            cpus: 2,
            visits: None,
            visits_counted: 3,
            visits_counted_ns: 2,
            zone_waits: Some(ZoneWaits { waits: 1, wait_ns: 9, ..ZoneWaits::default() }),
            tasks: vec![CountedTask { tid: Some(7), party: Party::Command, visits: 2, waits: 1, wait_ns: 9 }],
            sites: vec![CountedSite {
                function: Some("f".into()),
                visits: Some(2),
                ..CountedSite::default()
            }],
            locks: Some(vec![CountedLock { lock: LockName::Unknown, waits: 1, wait_ns: 4 }]),
            is_command_known: true,
            tracepoints: vec![count("kmem/mm_page_free", Some(estimate)), count("kmem/mm_page_alloc", None)],
        };
        let json = serde_json::to_string(&counts).unwrap();
        assert_eq!(serde_json::from_str::<Counts>(&json).unwrap(), counts);
        assert_eq!(counts.hits("kmem/mm_page_free"), Some(estimate));
        // The hits of `mm_page_alloc` are unknown because this tracepoint was switched on too rarely. The
        // hits of `mm_page_pcpu_refill` are unknown because the kernel does not have this tracepoint.
        assert_eq!(counts.hits("kmem/mm_page_alloc"), None);
        assert_eq!(counts.hits("kmem/mm_page_pcpu_refill"), None);
        assert!(!estimate.is_exact());
    }

    #[test]
    fn visits_are_no_more_than_what_they_moved() {
        let exact = |hits| Some(HitEstimate::exact(hits));
        let of = |name: &str, hits| TracepointCount { name: name.into(), hits, ..TracepointCount::default() };
        let mut counts = Counts {
            tracepoints: vec![
                of("kmem/mm_page_alloc_zone_locked", exact(30)),
                of("kmem/mm_page_pcpu_drain", exact(20)),
            ],
            visits: Some(HitEstimate { low: 5, hits: 40, high: 90 }),
            ..Counts::default()
        };
        assert_eq!(counts.moved_blocks(), exact(50));
        assert_eq!(counts.zone_visits(), Some(HitEstimate { low: 5, hits: 40, high: 50 }));
        counts.tracepoints.pop();
        assert_eq!((counts.moved_blocks(), counts.zone_visits()), (None, None));
    }
}
