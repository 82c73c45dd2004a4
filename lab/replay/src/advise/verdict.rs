//! The verdict on findings and forecasts. The thresholds of the advice are in this file, each with its
//! reason.

use serde::Serialize;

use super::findings::Evidence;
use super::forecast::Forecast;

/// A change is advised for its CPU time only if the change saves at least this percentage of the CPU time.
/// Two runs of one benchmark differ by about this percentage.
pub const SAVED_PERCENT: f64 = 1.0;
/// If memory is short, page sets matter if they hold at least this percentage of all memory.
const HELD_PERCENT: f64 = 1.0;
/// A change is advised for its CPU time only if page sets hold at most this percentage of all memory after
/// the change.
const HELD_PERCENT_MAX: f64 = 5.0;
/// If more than this percentage of the events is missing, the figures do not describe the load.
const LOST_PERCENT: f64 = 5.0;
/// Shortest recording that gets a verdict. A shorter recording does not represent its load.
const SECONDS_MIN: f64 = 0.5;

/// The advice to the user.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Change nothing, because no effect of page sets matters.
    LeaveAlone,
    /// A setting of `/proc/sys/vm` helps; such a setting takes effect without a reboot.
    Set {
        /// The effect of page sets that the advised change improves.
        matter: Matter,
        /// The advised forecast: an index into [`Advice::forecasts`](super::Advice::forecasts).
        forecast: usize,
    },
    /// No setting is certain to help, but another kernel is.
    ChangeKernel {
        /// The effect of page sets that the advised change improves.
        matter: Matter,
        /// The advised forecast: an index into [`Advice::forecasts`](super::Advice::forecasts).
        forecast: usize,
    },
    /// An effect of page sets matters, but no setting or kernel is certain to help.
    NothingHelps {
        /// The effect that matters.
        matter: Matter,
    },
    /// One effect of page sets is large enough to matter. The recording has only counts, and counts do not
    /// show which setting helps.
    Matters {
        /// The effect that matters.
        matter: Matter,
    },
    /// No verdict is possible from this recording.
    Unknown {
        /// The reason.
        why: Why,
    },
}

/// The effects of page sets that can matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// Zone visits, and waits for zone locks, take CPU time.
    CpuTime,
    /// Page sets hold memory that is needed elsewhere.
    HeldMemory,
}

/// Reasons why a recording has no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The recording lacks events that the verdict needs.
    NotRecorded,
    /// A setting changed at an unknown time.
    SettingChanged,
    /// The recording has only a part of its machine's events.
    PartOfMachine,
    /// The recording has no allocations, or is very short.
    TooShort,
    /// Too many events are missing.
    EventsLost,
    /// The replay under the recorded kernel's policy differs too much from that kernel's own counts.
    OwnKernelMissed,
    /// The recorded kernel's policy is not known.
    UnknownKernel,
    /// Waits for zone locks were not recorded, and may be long.
    WaitsNotRecorded,
    /// There are many visits, and the cost of a visit was not measured before the recording.
    CostNotMeasured,
    /// Page sets may matter, but the recording has only counts, and a forecast needs events.
    EventsNeeded,
}

/// The verdict.
pub(super) fn find(findings: &Evidence, forecasts: &[Forecast]) -> Verdict {
    match doubt(findings).map_or_else(|| matter(findings), Err) {
        Err(why) => Verdict::Unknown { why },
        Ok(None) => Verdict::LeaveAlone,
        Ok(Some(matter)) if findings.is_counted => certainly(findings, matter),
        Ok(Some(matter)) => what_helps(findings, forecasts, matter),
    }
}

/// Returns the reason why no verdict is possible, whether or not page sets matter.
fn doubt(findings: &Evidence) -> Option<Why> {
    let lost_percent =
        100.0 * findings.lost_events as f64 / (findings.events + findings.lost_events).max(1) as f64;
    let doubts = &findings.doubts;
    let checks = [
        (findings.waiting.is_none() || findings.allocated_pages.is_none(), Why::NotRecorded),
        (findings.is_counted && findings.visits.is_none(), Why::NotRecorded),
        (doubts.setting_changed.is_some(), Why::SettingChanged),
        (findings.allocated_pages == Some(0) || findings.seconds < SECONDS_MIN, Why::TooShort),
        (lost_percent > LOST_PERCENT, Why::EventsLost),
        (doubts.part_of_machine.is_some(), Why::PartOfMachine),
        (findings.is_own_far_off, Why::OwnKernelMissed),
    ];
    checks.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why)
}

/// Finds the effect of page sets that matters; `None` if no effect matters.
fn matter(findings: &Evidence) -> Result<Option<Matter>, Why> {
    let spending = &findings.spending;
    if spending.most_percent.is_some_and(|percent| percent >= SAVED_PERCENT) {
        return Ok(Some(Matter::CpuTime));
    }
    let is_cheap = spending.most_percent.or_else(|| spending.most_percent_at_any_cost());
    let is_cheap = is_cheap.is_some_and(|percent| percent < SAVED_PERCENT);
    // A recording of counts has the number of pages in page sets only at its end. Before the end of the
    // recording, while memory was short, page sets may have held more pages.
    if findings.is_counted && findings.is_memory_short() == Some(true) {
        return Err(Why::EventsNeeded);
    }
    let holds_much = findings.held_percent().map(|percent| percent >= HELD_PERCENT);
    match (findings.is_memory_short(), holds_much) {
        (Some(true), Some(true)) => Ok(Some(Matter::HeldMemory)),
        (Some(true), None) => Err(Why::UnknownKernel),
        (None, Some(true) | None) => Err(Why::NotRecorded),
        (Some(false), _) | (_, Some(false)) if is_cheap => Ok(None),
        (Some(false), _) | (_, Some(false)) => Err(Why::CostNotMeasured),
    }
}

/// Makes the verdict from counts. CPU time matters only if the lower ends of `waits_percent` and
/// `visits_percent` add up to at least [`SAVED_PERCENT`].
fn certainly(findings: &Evidence, matter: Matter) -> Verdict {
    let spending = &findings.spending;
    let least =
        spending.waits_percent.zip(spending.visits_percent).map(|(waits, visits)| waits.low + visits.low);
    if matter == Matter::CpuTime && least.is_some_and(|percent| percent >= SAVED_PERCENT) {
        return Verdict::Matters { matter };
    }
    Verdict::Unknown { why: Why::EventsNeeded }
}

fn what_helps(findings: &Evidence, forecasts: &[Forecast], matter: Matter) -> Verdict {
    if findings.own_off_percent.is_none() {
        return Verdict::Unknown { why: Why::UnknownKernel };
    }
    let waits = findings.spending.waits_percent;
    let may_wait = waits.is_some_and(|waits| waits.low < waits.high && waits.high >= SAVED_PERCENT);
    let best = |is_kernel: bool| best(findings, forecasts, matter, is_kernel);
    match (best(false), best(true)) {
        (Some(forecast), _) => Verdict::Set { matter, forecast },
        (None, Some(forecast)) => Verdict::ChangeKernel { matter, forecast },
        (None, None) if matter == Matter::CpuTime && may_wait => {
            Verdict::Unknown { why: Why::WaitsNotRecorded }
        }
        (None, None) => Verdict::NothingHelps { matter },
    }
}

/// Finds the forecast to advise, among the forecasts that certainly help. A forecast counts as equal to the
/// forecast with the fewest visits if the intervals of both overlap. Among equal forecasts, a forecast that
/// keeps the kernel's own tuning comes first. Among forecasts that are equal in tuning too, fewer held pages
/// decide, and if the held pages are equal, fewer visits.
fn best(findings: &Evidence, forecasts: &[Forecast], matter: Matter, is_kernel: bool) -> Option<usize> {
    let visits = findings.visits?;
    let held_max = (findings.managed_pages? as f64 * HELD_PERCENT_MAX / 100.0) as u64;
    let helps = |forecast: &Forecast| match matter {
        Matter::CpuTime => {
            forecast.saved_percent.is_some_and(|(least, _)| least >= SAVED_PERCENT)
                && forecast.held_pages_peak <= held_max
        }
        Matter::HeldMemory => {
            let now = findings.held_pages_peak.unwrap_or(u64::MAX);
            forecast.held_pages_peak <= now / 2 && forecast.visits_range.high <= visits.saturating_mul(2)
        }
    };
    let those: Vec<usize> = (0..forecasts.len())
        .filter(|at| forecasts[*at].kernel.is_some() == is_kernel && helps(&forecasts[*at]))
        .collect();
    let first = *those.iter().min_by_key(|at| forecasts[**at].visits)?;
    let alike = those.into_iter().filter(|at| forecasts[*at].overlaps(&forecasts[first]));
    alike.min_by_key(|at| (forecasts[*at].ends_tuning, forecasts[*at].held_pages_peak, forecasts[*at].visits))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::findings::Doubts;
    use super::super::spending::tests::cost;
    use super::super::{Figure, Load, Range, Spending, Waiting};
    use super::*;

    /// A load on 4 CPUs that lasts 10 s.
    pub(crate) fn load(percent: f64) -> Load {
        Load {
            cpu_time_ns: Some(Figure::exact(4e10)),
            visits: Some(Figure::exact(1000.0)),
            moved_pages: Some(Figure::exact(50_000.0)),
            wait_ns: Some(Figure::exact(percent * 4e8)),
        }
    }

    /// A load whose CPUs wait for `percent` of their time. The cost of its visits is negligible.
    pub(crate) fn waiting(percent: f64) -> Evidence {
        Evidence {
            is_counted: false,
            counted_time: None,
            cpus: Some(4),
            seconds: 10.0,
            events: 100_000,
            lost_events: 0,
            is_cut: false,
            not_recorded: Vec::new(),
            allocated_pages: Some(40_000),
            zone_pages: Some(30_000),
            visits: Some(1000),
            waiting: Some(Waiting::Measured { percent, waits: 900 }),
            spending: Spending::new(load(percent), Some(cost())),
            other_spin_percent: Some(0.1),
            other_longest_percent: Some(0.1),
            remote_percent: Some(50.0),
            held_pages_peak: Some(2000),
            held_pages_end: Some(1000),
            managed_pages: Some(1_000_000),
            kswapd_wakes: Some(0),
            direct_reclaims: Some(0),
            own_off_percent: Some(1.0),
            is_own_far_off: false,
            doubts: Doubts::default(),
        }
    }

    pub(crate) fn forecast(setting: &str, visits: u64, range: (u64, u64), held: u64) -> Forecast {
        Forecast {
            kernel: None,
            settings: setting.into(),
            visits,
            visits_range: Range { low: range.0, high: range.1 },
            visits_percent: Some((range.0 as f64 / 10.0, range.1 as f64 / 10.0)),
            saved_percent: waiting(5.0)
                .spending
                .saved_percent((range.0 as f64 / 1000.0, range.1 as f64 / 1000.0)),
            held_pages_peak: held,
            held_pages_idle: held / 2,
            ends_tuning: false,
        }
    }

    #[test]
    fn what_costs_nothing_is_left_alone() {
        let helpful = [forecast("a", 10, (5, 20), 3000)];
        assert_eq!(find(&waiting(0.9), &helpful), Verdict::LeaveAlone);
        assert_eq!(find(&Evidence { kswapd_wakes: Some(1), ..waiting(0.0) }, &helpful), Verdict::LeaveAlone);
    }

    #[test]
    fn of_equally_good_settings_the_cheapest_is_advised() {
        let forecasts = [
            forecast("dear", 100, (80, 130), 9000),
            forecast("cheap", 110, (90, 140), 4000),
            forecast("weak", 700, (700, 890), 100),
            forecast("unsure", 20, (1, 1200), 100),
            forecast("huge", 1, (0, 2), 60_000),
        ];
        let matter = Matter::CpuTime;
        assert_eq!(find(&waiting(5.0), &forecasts), Verdict::Set { matter, forecast: 1 });
        assert_eq!(find(&waiting(5.0), &forecasts[3..]), Verdict::NothingHelps { matter });
    }

    #[test]
    fn another_kernel_is_advised_only_if_no_setting_helps() {
        let kernel = Forecast { kernel: Some("linux-6.12".into()), ..forecast("", 10, (5, 20), 100) };
        let matter = Matter::CpuTime;
        let (unsure, sure) = (forecast("u", 900, (800, 990), 1), forecast("s", 100, (50, 200), 1));
        let found = find(&waiting(5.0), &[unsure, kernel.clone()]);
        assert_eq!(found, Verdict::ChangeKernel { matter, forecast: 1 });
        assert_eq!(find(&waiting(5.0), &[kernel, sure]), Verdict::Set { matter, forecast: 1 });
    }

    #[test]
    fn a_recording_that_does_not_say_gives_no_advice() {
        let good = [forecast("a", 10, (5, 20), 3000)];
        let base = waiting(5.0);
        let (said, none) = (|| Some(String::new()), Doubts::default);
        for (findings, why) in [
            (Evidence { seconds: 0.1, ..base.clone() }, Why::TooShort),
            (Evidence { lost_events: 50_000, ..base.clone() }, Why::EventsLost),
            (Evidence { is_own_far_off: true, ..base.clone() }, Why::OwnKernelMissed),
            (Evidence { is_own_far_off: true, ..waiting(0.0) }, Why::OwnKernelMissed),
            (Evidence { own_off_percent: None, ..base.clone() }, Why::UnknownKernel),
            (Evidence { waiting: None, ..base.clone() }, Why::NotRecorded),
            (Evidence { allocated_pages: None, ..base.clone() }, Why::NotRecorded),
            (
                Evidence { kswapd_wakes: None, held_pages_peak: Some(20_000), ..waiting(0.0) },
                Why::NotRecorded,
            ),
            (
                Evidence { doubts: Doubts { setting_changed: said(), ..none() }, ..base.clone() },
                Why::SettingChanged,
            ),
            (Evidence { doubts: Doubts { part_of_machine: said(), ..none() }, ..base }, Why::PartOfMachine),
        ] {
            assert_eq!(find(&findings, &good), Verdict::Unknown { why });
        }
    }

    #[test]
    fn waits_that_were_not_recorded_prove_nothing() {
        let unknown = Load { wait_ns: Some(Figure::at_most(2e9)), ..load(0.0) };
        let findings = Evidence { spending: Spending::new(unknown, Some(cost())), ..waiting(0.0) };
        let saved = |(least, most)| Forecast {
            saved_percent: Some((least, most)),
            ..forecast("a", 10, (5, 20), 3000)
        };
        let why = Why::WaitsNotRecorded;
        assert_eq!(find(&findings, &[saved((0.0, 5.0))]), Verdict::Unknown { why });
        let matter = Matter::CpuTime;
        assert_eq!(find(&findings, &[saved((1.0, 5.0))]), Verdict::Set { matter, forecast: 0 });
    }

    #[test]
    fn without_the_cost_of_a_visit_there_is_no_yes() {
        let helpful = [Forecast { saved_percent: None, ..forecast("a", 10, (5, 20), 3000) }];
        let without = |load: Load| Evidence { spending: Spending::new(load, None), ..waiting(0.0) };
        let why = Why::CostNotMeasured;
        assert_eq!(find(&without(load(5.0)), &helpful), Verdict::Unknown { why });
        let few = load(0.0);
        assert_eq!(find(&without(few), &helpful), Verdict::LeaveAlone, "25 visits a second");
        let many = Load { visits: Some(Figure::exact(100_000.0)), ..few };
        assert_eq!(find(&without(many), &helpful), Verdict::Unknown { why });
    }

    #[test]
    fn visits_matter_without_any_wait() {
        let many =
            Load { visits: Some(Figure::exact(1e6)), moved_pages: Some(Figure::exact(5e7)), ..load(0.0) };
        let findings = Evidence { spending: Spending::new(many, Some(cost())), ..waiting(0.0) };
        let saved = Forecast { saved_percent: Some((3.0, 6.0)), ..forecast("a", 10, (5, 20), 3000) };
        let matter = Matter::CpuTime;
        assert_eq!(find(&findings, &[saved]), Verdict::Set { matter, forecast: 0 });
    }

    /// In this test, page sets hold too few pages to matter, whether or not memory was short.
    #[test]
    fn a_shortage_that_was_not_recorded_does_not_hide_that_page_sets_hold_little() {
        let findings = Evidence { kswapd_wakes: None, direct_reclaims: None, ..waiting(0.0) };
        assert_eq!(find(&findings, &[]), Verdict::LeaveAlone);
        let held_pages_end = None;
        let unknown = Evidence { held_pages_peak: None, held_pages_end, ..findings };
        assert_eq!(find(&unknown, &[]), Verdict::Unknown { why: Why::NotRecorded });
    }

    #[test]
    fn memory_in_page_sets_matters_where_memory_is_short() {
        let findings = Evidence { kswapd_wakes: Some(3), held_pages_peak: Some(20_000), ..waiting(0.0) };
        let forecasts =
            [forecast("less", 1500, (1200, 1900), 5000), forecast("costs", 9000, (8000, 9900), 100)];
        let matter = Matter::HeldMemory;
        assert_eq!(find(&findings, &forecasts), Verdict::Set { matter, forecast: 0 });
    }
}
