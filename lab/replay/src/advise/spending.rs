//! The share of the CPUs' time that zone visits and waits for zone locks take.
//!
//! [`Load`] holds the measured figures, from a whole recording or from counts. [`Spending`] combines the
//! figures with the cost of a visit. The cost of a visit comes from the recording, not from the machine that
//! reads the recording.

use pageset_trace::{TraceInfo, VisitCost};
use serde::Serialize;

/// A number with its range. If the number was counted exactly, both ends of the range equal the number. The
/// range of an estimated count is its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The number.
    pub value: f64,
    /// The lower end of the range.
    pub low: f64,
    /// The upper end of the range.
    pub high: f64,
}

impl Figure {
    /// Makes a number that was counted exactly.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Makes a number if only an upper bound is known.
    #[must_use]
    pub const fn at_most(high: f64) -> Self {
        Self { value: high, low: 0.0, high }
    }

    fn times(self, by: Self) -> Self {
        Self { value: self.value * by.value, low: self.low * by.low, high: self.high * by.high }
    }

    fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, low: self.low + other.low, high: self.high + other.high }
    }

    fn percent_of(self, whole: Self) -> Option<Self> {
        let of = |part: f64, whole: f64| (whole > 0.0).then(|| 100.0 * part / whole);
        Some(Self {
            value: of(self.value, whole.value)?,
            low: of(self.low, whole.high)?,
            high: of(self.high, whole.low)?,
        })
    }
}

/// A load as it was recorded. A figure is `None` if it was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// The busy time of all CPUs. If the recording does not have the busy time, the figure is the time of all
    /// CPUs, busy or idle.
    pub cpu_time_ns: Option<Figure>,
    /// Number of zone visits.
    pub visits: Option<Figure>,
    /// Number of pages that zone visits moved.
    pub moved_pages: Option<Figure>,
    /// Time of all waits for zone locks.
    pub wait_ns: Option<Figure>,
}

/// The cost of a visit that is assumed if the cost was not measured. The value is a guess: the largest drain
/// of Linux moves 2016 pages, at 50 ns each.
const VISIT_NS_MAX: f64 = 100_000.0;

/// The share of the CPUs' time that visits and waits took.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spending {
    /// The figures that all shares are computed from.
    pub load: Load,
    /// Whether `load.cpu_time_ns` is busy time only.
    pub is_busy_time: bool,
    /// The cost of a visit; `None` if the cost was not measured before the recording.
    pub cost: Option<VisitCost>,
    /// Waits for zone locks, in percent of the CPU time.
    pub waits_percent: Option<Figure>,
    /// Zone visits, in percent of the CPU time.
    pub visits_percent: Option<Figure>,
    /// The most CPU time that any setting could save, in percent: the sum of the upper ends of
    /// `waits_percent` and `visits_percent`.
    pub most_percent: Option<f64>,
}

impl Spending {
    /// Computes the shares for a recording. `all_ns` is the time of all CPUs, busy or idle.
    pub(super) fn of_recording(info: &TraceInfo, all_ns: Option<u64>, load: Load) -> Self {
        // Ignore a busy time of 0, or of more than twice the time of all CPUs. The busy time is wrong if the
        // clock was set during the recording.
        let busy_ns =
            info.busy_ns.filter(|busy_ns| *busy_ns > 0 && all_ns.is_none_or(|all| *busy_ns <= 2 * all));
        let time = busy_ns.or(all_ns).map(|ns| Figure::exact(ns as f64));
        let cost = info.visit_cost.clone().filter(VisitCost::is_sound);
        Self { is_busy_time: busy_ns.is_some(), ..Self::new(Load { cpu_time_ns: time, ..load }, cost) }
    }

    /// Estimates the CPU time of all visits in `load`, from the number of visits, the number of moved pages,
    /// and the cost of a visit. `None` if the recording has no plausible cost of a visit, or no number of
    /// visits.
    pub(super) fn visits_ns_of(info: &TraceInfo, load: Load) -> Option<Figure> {
        visits_ns(&load, info.visit_cost.as_ref().filter(|cost| cost.is_sound())?)
    }

    /// Computes the shares from a load and a cost.
    #[must_use]
    pub fn new(load: Load, cost: Option<VisitCost>) -> Self {
        let share = |part: Option<Figure>| part?.percent_of(load.cpu_time_ns?);
        let visits_ns = cost.as_ref().and_then(|cost| visits_ns(&load, cost));
        let (waits_percent, visits_percent) = (share(load.wait_ns), share(visits_ns));
        let most_percent = waits_percent.zip(visits_percent).map(|(waits, visits)| waits.high + visits.high);
        Self { load, is_busy_time: false, cost, waits_percent, visits_percent, most_percent }
    }

    /// Computes `most_percent` with the assumed cost `VISIT_NS_MAX`, for a recording without a measured cost.
    pub(super) fn most_percent_at_any_cost(&self) -> Option<f64> {
        let visits_ns = self.load.visits?.times(Figure::exact(VISIT_NS_MAX));
        Some(self.waits_percent?.high + visits_ns.percent_of(self.load.cpu_time_ns?)?.high)
    }

    /// The least and the most CPU time that a forecast saves, in percent. `left` is the range of the visits
    /// that remain, as parts of all visits. Assumes that waits fall in proportion to visits. In reality waits
    /// fall faster, because queues become shorter.
    pub(super) fn saved_percent(&self, left: (f64, f64)) -> Option<(f64, f64)> {
        let all = self.waits_percent?.plus(self.visits_percent?);
        let (least, most) = ((1.0 - left.1) * all.low, (1.0 - left.0) * all.high);
        // If visits increase, the highest cost of a visit gives the largest loss.
        Some(if left.1 > 1.0 { ((1.0 - left.1) * all.high, most) } else { (least, most) })
    }
}

/// Computes the time of visits from the cost of a visit. If the number of moved pages is known, also computes
/// this time from the cost of a page. The returned range covers both times, because visits that move more
/// pages than the measured visits cost more.
fn visits_ns(load: &Load, cost: &VisitCost) -> Option<Figure> {
    let each = |range: pageset_trace::CostRange| Figure {
        value: range.median,
        low: range.min.max(0.0),
        high: range.max.max(0.0),
    };
    let by_visits = load.visits?.times(each(cost.visit_ns));
    let Some(pages) = load.moved_pages else { return Some(by_visits) };
    let by_pages = pages.times(each(cost.page_ns));
    Some(Figure {
        value: f64::midpoint(by_visits.value, by_pages.value),
        low: by_visits.low.min(by_pages.low),
        high: by_visits.high.max(by_pages.high),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use pageset_trace::CostRange;

    use super::*;

    /// A cost of 2 us for each visit, measured with visits of 50 pages.
    pub(crate) fn cost() -> VisitCost {
        VisitCost {
            visit_ns: CostRange { min: 1500.0, median: 2000.0, max: 2500.0 },
            page_ns: CostRange { min: 30.0, median: 40.0, max: 50.0 },
            pages_per_visit: 50.0,
            rounds: 7,
            cpu: "x".into(),
            kernel: "6.18".into(),
            date: "2026-11-26".into(),
        }
    }

    fn load(visits: f64, pages: f64) -> Load {
        Load {
            cpu_time_ns: Some(Figure::exact(1e9)),
            visits: Some(Figure::exact(visits)),
            moved_pages: Some(Figure::exact(pages)),
            wait_ns: Some(Figure::exact(1e7)),
        }
    }

    #[test]
    fn shares_follow_from_counts_and_cost() {
        let spending = Spending::new(load(10_000.0, 500_000.0), Some(cost()));
        assert_eq!(spending.waits_percent, Some(Figure::exact(1.0)));
        assert_eq!(spending.visits_percent, Some(Figure { value: 2.0, low: 1.5, high: 2.5 }));
        assert_eq!(spending.most_percent, Some(3.5));
        assert_eq!(spending.saved_percent((0.0, 0.5)), Some((1.25, 3.5)));
        let (least, most) = spending.saved_percent((1.2, 2.0)).unwrap();
        assert!(least < most && most < 0.0, "{least} {most}");
    }

    #[test]
    fn visits_of_other_sizes_widen_the_range() {
        let small = Spending::new(load(10_000.0, 100_000.0), Some(cost())).visits_percent.unwrap();
        assert!((small.low - 0.3).abs() < 1e-9 && (small.high - 2.5).abs() < 1e-9, "{small:?}");
    }

    #[test]
    fn what_was_not_measured_stays_unknown() {
        let without = Spending::new(load(10_000.0, 1.0), None);
        assert_eq!(
            (without.visits_percent, without.most_percent, without.saved_percent((0.0, 0.0))),
            (None, None, None)
        );
        assert_eq!(without.most_percent_at_any_cost(), Some(101.0));
        let no_waits = Spending::new(Load { wait_ns: None, ..load(1.0, 1.0) }, Some(cost()));
        assert!(no_waits.visits_percent.is_some() && no_waits.most_percent.is_none());
    }

    #[test]
    fn busy_time_comes_before_all_time() {
        let info = TraceInfo { busy_ns: Some(500), ..TraceInfo::default() };
        let of = |info: &TraceInfo| Spending::of_recording(info, Some(1000), Load::default());
        assert_eq!(of(&info).load.cpu_time_ns, Some(Figure::exact(500.0)));
        assert_eq!(of(&TraceInfo::default()).load.cpu_time_ns, Some(Figure::exact(1000.0)));
    }
}
