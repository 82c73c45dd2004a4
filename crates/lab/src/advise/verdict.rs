//! What follows from findings and forecasts. The limits here are all there are; each with its reason.

use serde::Serialize;

use super::findings::Findings;
use super::forecast::Forecast;

/// Time lost to zone locks that is worth a change, in percent of all CPUs' time. Less than this, two runs of one benchmark
/// differ by more.
const WAITING_PERCENT: f64 = 1.0;
/// Memory in page sets that is worth a change where memory is short, in percent of all.
const HELD_PERCENT: f64 = 1.0;
/// Memory that page sets may hold at most under a setting that is advised, in percent of all.
const HELD_PERCENT_MAX: f64 = 5.0;
/// Part of the visits that a change must save at least, in percent: a smaller one cannot be told from the load's own noise.
const SAVED_PERCENT: f64 = 20.0;
/// A recording whose own kernel the replay misses by more says nothing about others.
const OWN_OFF_PERCENT: f64 = 25.0;
/// Missing events, in percent, from which the figures are no longer those of the load.
const LOST_PERCENT: f64 = 5.0;
/// Time from which a recording is a sample of a load.
const SECONDS_MIN: f64 = 0.5;

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The page sets are not the problem.
    LeaveAlone,
    /// A setting that can be made now helps.
    Set {
        /// What matters.
        matter: Matter,
        /// Which forecast, by its place in [`Advice::forecasts`](super::Advice::forecasts).
        forecast: usize,
    },
    /// No setting certainly helps; another kernel does.
    ChangeKernel {
        /// What matters.
        matter: Matter,
        /// Which forecast.
        forecast: usize,
    },
    /// Something matters, and no forecast certainly helps.
    NothingHelps {
        /// What matters.
        matter: Matter,
    },
    /// The recording does not say.
    Unknown {
        /// Why not.
        why: Why,
    },
}

/// What matters about page sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// CPUs wait for zone locks.
    ZoneLocks,
    /// Page sets hold memory that others need.
    HeldMemory,
}

/// Why a recording does not say what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It has no allocations, or is very short.
    TooShort,
    /// Too many events are missing.
    EventsLost,
    /// The replay does not find the recorded kernel again.
    OwnKernelMissed,
    /// No policy is known for the kernel.
    UnknownKernel,
    /// Waits were not recorded, and may be long.
    WaitsNotRecorded,
}

/// The verdict.
pub(super) fn find(findings: &Findings, forecasts: &[Forecast]) -> Verdict {
    let lost_percent =
        100.0 * findings.lost_events as f64 / (findings.events + findings.lost_events).max(1) as f64;
    if findings.allocated_pages == 0 || findings.seconds < SECONDS_MIN {
        return Verdict::Unknown { why: Why::TooShort };
    }
    if lost_percent > LOST_PERCENT {
        return Verdict::Unknown { why: Why::EventsLost };
    }
    let Some(matter) = matter(findings) else { return Verdict::LeaveAlone };
    let Some(own_off) = findings.own_off_percent else {
        return Verdict::Unknown { why: Why::UnknownKernel };
    };
    if matter == Matter::ZoneLocks && matches!(findings.waiting, super::Waiting::AtMost { .. }) {
        return Verdict::Unknown { why: Why::WaitsNotRecorded };
    }
    if own_off.abs() > OWN_OFF_PERCENT {
        return Verdict::Unknown { why: Why::OwnKernelMissed };
    }
    let best = |is_kernel: bool| best(findings, forecasts, matter, is_kernel);
    match (best(false), best(true)) {
        (Some(forecast), _) => Verdict::Set { matter, forecast },
        (None, Some(forecast)) => Verdict::ChangeKernel { matter, forecast },
        (None, None) => Verdict::NothingHelps { matter },
    }
}

fn matter(findings: &Findings) -> Option<Matter> {
    if findings.waiting.percent() >= WAITING_PERCENT {
        return Some(Matter::ZoneLocks);
    }
    let holds_much = findings.held_percent().is_some_and(|percent| percent >= HELD_PERCENT);
    (findings.is_memory_short() && holds_much).then_some(Matter::HeldMemory)
}

/// The forecast to follow: of those that certainly help, and of those that cannot be told from the best of them, the one
/// whose page sets hold least.
fn best(findings: &Findings, forecasts: &[Forecast], matter: Matter, is_kernel: bool) -> Option<usize> {
    let held_max = (findings.managed_pages as f64 * HELD_PERCENT_MAX / 100.0) as u64;
    let enough = (findings.visits as f64 * (1.0 - SAVED_PERCENT / 100.0)) as u64;
    let helps = |forecast: &Forecast| match matter {
        Matter::ZoneLocks => {
            forecast.is_less(findings.visits)
                && forecast.visits <= enough
                && forecast.held_pages_peak <= held_max
        }
        Matter::HeldMemory => {
            let now = findings.held_pages_peak.unwrap_or(u64::MAX);
            forecast.held_pages_peak <= now / 2
                && forecast.visits_range.high <= findings.visits.saturating_mul(2)
        }
    };
    let those: Vec<usize> = (0..forecasts.len())
        .filter(|at| forecasts[*at].kernel.is_some() == is_kernel && helps(&forecasts[*at]))
        .collect();
    let first = *those.iter().min_by_key(|at| forecasts[**at].visits)?;
    let alike = those.into_iter().filter(|at| forecasts[*at].overlaps(&forecasts[first]));
    alike.min_by_key(|at| (forecasts[*at].held_pages_peak, forecasts[*at].visits))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Range, Waiting};
    use super::*;

    /// A load that waits for `percent` of its time.
    pub(crate) fn waiting(percent: f64) -> Findings {
        Findings {
            cpus: 4,
            seconds: 10.0,
            events: 100_000,
            lost_events: 0,
            allocated_pages: 40_000,
            zone_pages: 30_000,
            visits: 1000,
            waiting: Waiting::Measured { percent, waits: 900 },
            other_spin_percent: Some(0.1),
            other_longest_percent: Some(0.1),
            remote_percent: Some(50.0),
            held_pages_peak: Some(2000),
            held_pages_end: Some(1000),
            managed_pages: 1_000_000,
            kswapd_wakes: 0,
            direct_reclaims: 0,
            own_off_percent: Some(1.0),
        }
    }

    pub(crate) fn forecast(setting: &str, visits: u64, range: (u64, u64), held: u64) -> Forecast {
        Forecast {
            kernel: None,
            settings: setting.into(),
            visits,
            visits_range: Range { low: range.0, high: range.1 },
            visits_percent: Some((range.0 as f64 / 10.0, range.1 as f64 / 10.0)),
            held_pages_peak: held,
            held_pages_idle: held / 2,
            ends_tuning: false,
        }
    }

    #[test]
    fn what_costs_nothing_is_left_alone() {
        let helpful = [forecast("a", 10, (5, 20), 3000)];
        assert_eq!(find(&waiting(0.9), &helpful), Verdict::LeaveAlone);
        assert_eq!(find(&Findings { kswapd_wakes: 1, ..waiting(0.0) }, &helpful), Verdict::LeaveAlone);
    }

    #[test]
    fn of_equally_good_settings_the_cheapest_is_advised() {
        let forecasts = [
            forecast("dear", 100, (80, 130), 9000),
            forecast("cheap", 110, (90, 140), 4000),
            forecast("weak", 700, (600, 790), 100),
            forecast("unsure", 20, (1, 1200), 100),
            forecast("huge", 1, (0, 2), 60_000),
        ];
        let matter = Matter::ZoneLocks;
        assert_eq!(find(&waiting(5.0), &forecasts), Verdict::Set { matter, forecast: 1 });
        assert_eq!(find(&waiting(5.0), &forecasts[3..]), Verdict::NothingHelps { matter });
    }

    #[test]
    fn another_kernel_is_advised_only_if_no_setting_helps() {
        let kernel = Forecast { kernel: Some("linux-6.12".into()), ..forecast("", 10, (5, 20), 100) };
        let matter = Matter::ZoneLocks;
        let (unsure, sure) = (forecast("u", 900, (800, 990), 1), forecast("s", 100, (50, 200), 1));
        let found = find(&waiting(5.0), &[unsure, kernel.clone()]);
        assert_eq!(found, Verdict::ChangeKernel { matter, forecast: 1 });
        assert_eq!(find(&waiting(5.0), &[kernel, sure]), Verdict::Set { matter, forecast: 1 });
    }

    #[test]
    fn a_recording_that_does_not_say_gives_no_advice() {
        let good = [forecast("a", 10, (5, 20), 3000)];
        let base = waiting(5.0);
        for (findings, why) in [
            (Findings { seconds: 0.1, ..base.clone() }, Why::TooShort),
            (Findings { lost_events: 50_000, ..base.clone() }, Why::EventsLost),
            (Findings { own_off_percent: Some(-40.0), ..base.clone() }, Why::OwnKernelMissed),
            (Findings { own_off_percent: None, ..base.clone() }, Why::UnknownKernel),
            (Findings { waiting: Waiting::AtMost { percent: 5.0 }, ..base }, Why::WaitsNotRecorded),
        ] {
            assert_eq!(find(&findings, &good), Verdict::Unknown { why });
        }
    }

    #[test]
    fn memory_in_page_sets_matters_where_memory_is_short() {
        let findings = Findings { kswapd_wakes: 3, held_pages_peak: Some(20_000), ..waiting(0.0) };
        let forecasts =
            [forecast("less", 1500, (1200, 1900), 5000), forecast("costs", 9000, (8000, 9900), 100)];
        let matter = Matter::HeldMemory;
        assert_eq!(find(&findings, &forecasts), Verdict::Set { matter, forecast: 0 });
    }
}
