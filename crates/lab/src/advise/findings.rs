//! What a recording shows of a machine's page sets, in figures.

use pageset_trace::{EventKind, TraceInfo};
use pageset_workload::{Replay, Survey};
use serde::Serialize;

/// What a recording shows. Percentages are of what their names say.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// CPUs of the machine.
    pub cpus: u32,
    /// Time recorded.
    pub seconds: f64,
    /// Events read.
    pub events: u64,
    /// Events known to be missing.
    pub lost_events: u64,
    /// Pages allocated.
    pub allocated_pages: u64,
    /// Pages that left a zone: fetched by a page set, or given past one.
    pub zone_pages: u64,
    /// Refills and drains.
    pub visits: u64,
    /// How long the zones' locks were waited for, of all CPUs' time.
    pub waiting: Waiting,
    /// How long all other spinning locks were waited for, in percent of all CPUs' time; `None` if it was not recorded.
    pub other_spin_percent: Option<f64>,
    /// Of those, the one that was waited for longest.
    pub other_longest_percent: Option<f64>,
    /// Pages freed by another CPU than the one that allocated them. In percent of pages with both ends recorded.
    pub remote_percent: Option<f64>,
    /// Most pages that the recorded kernel's page sets held at once, as replayed.
    pub held_pages_peak: Option<u64>,
    /// Pages its page sets held when the recording ended.
    pub held_pages_end: Option<u64>,
    /// Pages that the machine's zones manage.
    pub managed_pages: u64,
    /// Times the background reclaimer was woken.
    pub kswapd_wakes: u64,
    /// Times a task had to reclaim for itself.
    pub direct_reclaims: u64,
    /// How far the replay of the recorded kernel is off its own visits, in percent; `None` if its policy is not known.
    pub own_off_percent: Option<f64>,
}

/// How long zone locks were waited for, in percent of all CPUs' time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Waiting {
    /// The recording has the waits.
    Measured {
        /// Share of all CPUs' time.
        percent: f64,
        /// How many there were.
        waits: u64,
    },
    /// It has not. While nobody holds a lock nobody waits for it, so holds bound waits.
    AtMost {
        /// Share of all CPUs' time.
        percent: f64,
    },
}

impl Waiting {
    /// The share, or what bounds it.
    #[must_use]
    pub const fn percent(self) -> f64 {
        match self {
            Self::Measured { percent, .. } | Self::AtMost { percent } => percent,
        }
    }
}

impl Findings {
    pub(super) fn new(info: &TraceInfo, survey: &Survey, replay: &Replay) -> Self {
        let (kernel, locks) = (&survey.kernel, &survey.kernel.zone_locks);
        let ns = survey.first_ns.zip(survey.last_ns).map_or(0, |(first, last)| last - first);
        let cpus = replay.machine.cpus;
        let of_cpu_time = |part_ns: u64| percent(part_ns as f64, ns as f64 * f64::from(cpus)).unwrap_or(0.0);
        let seen = |kind: EventKind| survey.kinds.iter().any(|(other, count)| *other == kind && *count > 0);
        let has_waits = seen(EventKind::ContentionEnd);
        let waiting = if has_waits {
            Waiting::Measured { percent: of_cpu_time(locks.wait_ns), waits: locks.waits }
        } else {
            let others = u64::from(cpus.saturating_sub(1));
            Waiting::AtMost { percent: of_cpu_time(locks.held_ns.saturating_mul(others)) }
        };
        let both_ends = survey.cpus.local_pages + survey.cpus.remote_pages;
        let held_at_end = |after: &pageset_trace::Snapshot| {
            let sets = after.zoneinfo.zones.iter().flat_map(|zone| &zone.pagesets);
            sets.map(|set| u64::from(set.count)).sum()
        };
        let own_off = replay.own.as_ref().map(|own| {
            let (own, itself) = (own.visits() as f64 + 1.0, replay.kernel_itself.visits() as f64 + 1.0);
            100.0 * (own / itself - 1.0)
        });
        Self {
            cpus,
            seconds: ns as f64 / 1e9,
            events: survey.events,
            lost_events: replay.lost.missing(),
            allocated_pages: allocated_pages(survey),
            zone_pages: kernel.refills.sum + kernel.direct_pages,
            visits: kernel.refills.total() + kernel.drains.total(),
            waiting,
            other_spin_percent: has_waits.then(|| of_cpu_time(locks.other_wait_ns)),
            other_longest_percent: has_waits.then(|| of_cpu_time(locks.other_longest_wait_ns)),
            remote_percent: percent(survey.cpus.remote_pages as f64, both_ends as f64),
            held_pages_peak: replay.own.as_ref().map(|own| own.pcp_pages_peak),
            held_pages_end: info.after.as_ref().map(held_at_end),
            managed_pages: replay.machine.zones.iter().map(|zone| zone.managed).sum(),
            kswapd_wakes: kernel.kswapd_wakes,
            direct_reclaims: kernel.direct_reclaims,
            own_off_percent: own_off,
        }
    }

    /// Pages that left a zone, in percent of those allocated; `None` if nothing was allocated.
    #[must_use]
    pub fn zone_percent(&self) -> Option<f64> {
        percent(self.zone_pages as f64, self.allocated_pages as f64)
    }

    /// Pages in page sets at most, in percent of the machine's.
    #[must_use]
    pub fn held_percent(&self) -> Option<f64> {
        percent(self.held_pages_peak.max(self.held_pages_end)? as f64, self.managed_pages as f64)
    }

    /// Whether memory was short.
    #[must_use]
    pub const fn is_memory_short(&self) -> bool {
        self.kswapd_wakes > 0 || self.direct_reclaims > 0
    }
}

fn allocated_pages(survey: &Survey) -> u64 {
    let orders = survey.orders.allocated.iter().enumerate();
    orders.map(|(order, types)| types.iter().sum::<u64>() << order).sum()
}

fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}
