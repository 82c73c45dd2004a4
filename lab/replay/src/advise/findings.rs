//! Figures about a machine's page sets, from one recording.

use pageset_trace::{EventKind, TraceInfo};
use serde::Serialize;

use super::spending::{Figure, Load, Spending};
use crate::recorded::needs;
use crate::{Replay, Survey, untimed};

/// Figures from one recording. A figure is `None` if the recording does not show the figure.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// Whether the recording has counts, and no events.
    pub is_counted: bool,
    /// The part of the time when events were counted; `None` in a recording of events.
    pub counted_time: Option<CountedTime>,
    /// Number of CPUs of the machine.
    pub cpus: Option<u32>,
    /// The length of the recording, in seconds.
    pub seconds: f64,
    /// Number of events read.
    pub events: u64,
    /// Number of events that are known to be missing.
    pub lost_events: u64,
    /// Whether the file is damaged. In a damaged file, all figures are about the part before the damage.
    #[serde(skip)]
    pub is_cut: bool,
    /// Tracepoints that figures need, and that are not known to be recorded.
    pub not_recorded: Vec<&'static str>,
    /// Number of pages allocated.
    pub allocated_pages: Option<u64>,
    /// Number of pages that left a zone. A page set fetched these pages, or a request took them past the page
    /// sets.
    pub zone_pages: Option<u64>,
    /// Number of refills and drains.
    pub visits: Option<u64>,
    /// How long CPUs waited for zone locks, as a share of all CPUs' time.
    pub waiting: Option<Waiting>,
    /// The share of the CPU time that visits to zones and waits for locks took.
    pub spending: Spending,
    /// How long CPUs waited for spinning locks other than zone locks, in percent of all CPUs' time.
    pub other_spin_percent: Option<f64>,
    /// The largest part of `other_spin_percent` that belongs to a single lock.
    pub other_longest_percent: Option<f64>,
    /// Number of pages that one CPU allocated and another CPU freed, in percent of the pages whose allocation
    /// and free were both recorded.
    pub remote_percent: Option<f64>,
    /// The largest number of pages that page sets held at one time, in a replay under the recorded kernel's
    /// policy. `None` without a replay.
    pub held_pages_peak: Option<u64>,
    /// The number of pages that page sets held at the end: in a recording of counts, at its end, and
    /// otherwise at the end of a replay under the recorded kernel's policy.
    pub held_pages_end: Option<u64>,
    /// Number of pages that the machine's zones manage.
    pub managed_pages: Option<u64>,
    /// Number of times that the background reclaimer was woken.
    pub kswapd_wakes: Option<u64>,
    /// Number of times that a task had to reclaim memory for itself.
    pub direct_reclaims: Option<u64>,
    /// The visits in a replay under the recorded kernel's policy, minus the visits that this kernel made, in
    /// percent of the visits that this kernel made.
    pub own_off_percent: Option<f64>,
    /// Whether `own_off_percent` is so large that forecasts are not reliable.
    #[serde(skip)]
    pub is_own_far_off: bool,
    /// Reasons why the recording may not represent its machine.
    #[serde(skip)]
    pub doubts: Doubts,
}

/// Reasons, in words, why a recording may not represent its machine.
#[derive(Clone, Debug, Default)]
pub struct Doubts {
    /// Names the events that a verdict needs and that were not recorded.
    pub not_recorded: Option<String>,
    /// Names the events that would show whether memory was short, and that were not recorded.
    pub shortage_not_recorded: Option<String>,
    /// Names a setting that changed at an unknown time.
    pub setting_changed: Option<String>,
    /// Says which part of its machine's events the recording has.
    pub part_of_machine: Option<String>,
}

impl Doubts {
    pub(super) fn new(info: &TraceInfo, survey: &Survey) -> Self {
        let recorded = &survey.recorded;
        let all = [needs::WAITS, needs::SHORTAGE].concat();
        Self {
            not_recorded: recorded.unsaid_beside(needs::VISITS, &all),
            shortage_not_recorded: recorded.unsaid_beside(needs::SHORTAGE, needs::WAITS),
            setting_changed: untimed(info),
            part_of_machine: survey.extent.part(info),
        }
    }
}

/// The parts of the time when frequent events were counted, in percent. Frequent events are counted only in
/// some segments of time, so that counting slows the load little.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CountedTime {
    /// The part of the time when zone visits were counted; `None` if visits were not counted.
    pub visits_percent: Option<f64>,
    /// The part of the time when moved blocks were counted; `None` if moved blocks were not counted.
    pub moved_percent: Option<f64>,
}

/// How long CPUs waited for zone locks, in percent of all CPUs' time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Waiting {
    /// Waits were recorded or counted. In counts, waits for locks of an unknown kind are included.
    Measured {
        /// Share of all CPUs' time.
        percent: f64,
        /// The number of waits.
        waits: u64,
    },
    /// Waits were neither recorded nor counted. The share is an upper bound: the share if all other CPUs wait
    /// whenever a CPU holds a zone lock.
    AtMost {
        /// Share of all CPUs' time.
        percent: f64,
    },
}

impl Waiting {
    /// Returns the share of all CPUs' time, or the upper bound of this share.
    #[must_use]
    pub const fn percent(self) -> f64 {
        match self {
            Self::Measured { percent, .. } | Self::AtMost { percent } => percent,
        }
    }
}

impl Evidence {
    /// Makes the findings from events. `replay` is `None` if the recording lacks events for a replay.
    pub(super) fn new(info: &TraceInfo, survey: &Survey, replay: Option<&Replay>) -> Self {
        let (kernel, locks) = (&survey.kernel, &survey.kernel.zone_locks);
        let ns = survey.time.map_or(0, |time| time.duration_ns);
        let machine = info.machine.as_ref();
        let cpus = machine.map(|machine| machine.cpus).or(info.cpus);
        let of_cpu_time =
            |part_ns: u64| Some(percent(part_ns as f64, ns as f64 * f64::from(cpus?)).unwrap_or(0.0));
        let waits = locks.waits.as_ref();
        let waiting = match waits {
            Some(found) => {
                of_cpu_time(found.wait_ns).map(|percent| Waiting::Measured { percent, waits: found.waits })
            }
            None => {
                let others = u64::from(cpus.unwrap_or(1).saturating_sub(1));
                let most = locks.held_ns.map(|held_ns| held_ns.saturating_mul(others));
                most.and_then(of_cpu_time).map(|percent| Waiting::AtMost { percent })
            }
        };
        let remote = survey.cpus.local_pages.zip(survey.cpus.remote_pages);
        let remote = remote.and_then(|(local, remote)| percent(remote as f64, (local + remote) as f64));
        let held_at_end = |after: &pageset_trace::Snapshot| {
            let sets = after.zoneinfo.zones.iter().flat_map(|zone| &zone.pagesets);
            sets.map(|set| u64::from(set.count)).sum()
        };
        let managed = machine.map(|machine| machine.zones.iter().map(|zone| zone.managed).sum());
        let own = replay.and_then(|replay| replay.own.as_ref());
        let needed = [needs::VISITS, needs::WAITS, needs::SHORTAGE].concat();
        let runs = kernel.refills.as_ref().zip(kernel.drains.as_ref());
        let exact = |count: u64| Figure::exact(count as f64);
        let wait_ns = match waiting {
            Some(Waiting::Measured { .. }) => waits.map(|found| exact(found.wait_ns)),
            Some(Waiting::AtMost { percent }) => {
                let all_ns = ns as f64 * f64::from(cpus.unwrap_or(1));
                Some(Figure::at_most(percent * all_ns / 100.0))
            }
            None => None,
        };
        let load = Load {
            cpu_time_ns: None,
            visits: kernel.visits().map(exact),
            moved_pages: runs.map(|(refills, drains)| exact(refills.sum + drains.sum)),
            wait_ns,
        };
        let all_ns = cpus.map(|cpus| ns.saturating_mul(u64::from(cpus)));
        Self {
            is_counted: false,
            counted_time: None,
            spending: Spending::of_recording(info, all_ns, load),
            cpus,
            seconds: ns as f64 / 1e9,
            events: survey.events,
            lost_events: survey.lost.missing(),
            is_cut: survey.lost.damaged_blocks > 0,
            not_recorded: survey.recorded.lacking(&needed).into_iter().map(EventKind::name).collect(),
            allocated_pages: survey.orders.allocated_pages,
            zone_pages: kernel
                .refilled_pages
                .zip(kernel.direct_pages)
                .map(|(refilled, direct)| refilled + direct),
            visits: kernel.visits(),
            waiting,
            other_spin_percent: waits.and_then(|found| of_cpu_time(found.other_wait_ns)),
            other_longest_percent: waits.and_then(|found| of_cpu_time(found.other_longest_wait_ns)),
            remote_percent: remote,
            held_pages_peak: own.map(|own| own.pcp_pages_peak),
            held_pages_end: info.after.as_ref().map(held_at_end),
            managed_pages: managed,
            kswapd_wakes: kernel.kswapd_wakes,
            direct_reclaims: kernel.direct_reclaims,
            own_off_percent: replay.and_then(Replay::own_off_percent),
            is_own_far_off: replay.is_some_and(Replay::is_far_off),
            doubts: Doubts::new(info, survey),
        }
    }

    /// Returns the number of pages that left a zone, in percent of the allocated pages. `None` if nothing was
    /// allocated.
    #[must_use]
    pub fn zone_percent(&self) -> Option<f64> {
        percent(self.zone_pages? as f64, self.allocated_pages? as f64)
    }

    /// Returns the largest number of pages that page sets are known to have held at one time, in percent of
    /// the machine's pages.
    #[must_use]
    pub fn held_percent(&self) -> Option<f64> {
        percent(self.held_pages_peak.max(self.held_pages_end)? as f64, self.managed_pages? as f64)
    }

    /// Whether memory was short; `None` if the signs of a shortage were not recorded.
    #[must_use]
    pub fn is_memory_short(&self) -> Option<bool> {
        let signs = [self.kswapd_wakes, self.direct_reclaims];
        if signs.iter().flatten().any(|times| *times > 0) {
            return Some(true);
        }
        signs.iter().all(Option::is_some).then_some(false)
    }
}

fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}
