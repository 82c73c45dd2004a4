//! Says whether page sets take so much CPU time that a change of settings may pay. Only a recording shows
//! which setting to change: see `pageset advise`.

use pageset_core::ZoneKind;
use pageset_trace::VisitCost;
use serde::Serialize;

use crate::view::View;

/// An interval's verdict on the machine's page sets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The answer.
    pub answer: Answer,
    /// The missing fact, if the answer is unknown.
    pub why: Option<Why>,
    /// Waits for zone locks, in percent of the CPUs' busy time.
    pub waits_percent: Option<f64>,
    /// Zone visits, in percent of the CPUs' busy time.
    pub visits_percent: Option<Share>,
    /// Waits and visits together. No setting of page sets can save more CPU time than waits and visits take
    /// together.
    pub all_percent: Option<Share>,
}

/// The answer to the question: may a setting of page sets save enough CPU time to be worth a change?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// No: page sets take less CPU time in total than a change must save.
    No,
    /// Unlikely: by the estimate, page sets take less CPU time than a change must save. By the upper bound,
    /// page sets may take more CPU time than a change must save.
    Unlikely,
    /// Perhaps: by the estimate, or by the waits alone, page sets take at least the CPU time that a change
    /// must save. A recording shows how much a change can save.
    Perhaps,
    /// A needed fact was not measured.
    Unknown,
}

impl Answer {
    /// All answers.
    pub const ALL: [Self; 4] = [Self::No, Self::Unlikely, Self::Perhaps, Self::Unknown];

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Unlikely => "unlikely",
            Self::Perhaps => "perhaps",
            Self::Unknown => "unknown",
        }
    }
}

/// The reason why the answer is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Tracepoints were not counted.
    NotCounted,
    /// Waits for zone locks were not recorded, or the recording missed some waits.
    WaitsNotWatched,
    /// The cost of a visit was not measured on this machine.
    CostNotMeasured,
    /// No CPU was busy, or busy time was not read.
    NoBusyTime,
}

/// A share in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The estimate, as [`Verdict::of`] computes it.
    pub estimate: f64,
    /// Upper bound.
    pub at_most: f64,
}

impl Verdict {
    /// Computes the verdict on an interval. `cost` is the cost of a visit. A change pays only if it saves at
    /// least `worth_percent`.
    ///
    /// The kernel counts blocks, not visits. The upper bound assumes that each visit moves only one block.
    /// The estimate is the mean of two costs: the cost of the visits if each visit moves a batch, and the
    /// cost of the moved pages.
    #[must_use]
    pub fn of(view: &View, cost: Option<&VisitCost>, worth_percent: f64) -> Self {
        let blocks = blocks(view);
        let busy_ns = view.busy_ns.filter(|busy_ns| *busy_ns > 0).map(|ns| ns as f64);
        let cost = cost.filter(|cost| cost.is_sound());
        let all_ns = view.interval_ns as f64 * view.totals.cpus as f64;
        let waits = view.zone_lock.as_ref().filter(|zone_lock| zone_lock.lost == 0);
        let waits_percent =
            waits.zip(busy_ns).map(|(zone_lock, busy_ns)| zone_lock.wait_percent * all_ns / busy_ns);
        let visits_percent = blocks.zip(cost).zip(busy_ns).map(|((blocks, cost), busy_ns)| {
            let percent = |ns: f64| 100.0 * ns / busy_ns;
            let by_pages = |page_ns: f64| blocks * page_ns.max(0.0);
            let at_most = (blocks * cost.visit_ns.max.max(0.0)).max(by_pages(cost.page_ns.max));
            let visits = blocks / batch(view);
            let estimate = f64::midpoint(visits * cost.visit_ns.median, by_pages(cost.page_ns.median));
            Share { estimate: percent(estimate.min(at_most)), at_most: percent(at_most) }
        });
        let all_percent = waits_percent.zip(visits_percent).map(|(waits, visits)| Share {
            estimate: waits + visits.estimate,
            at_most: waits + visits.at_most,
        });
        let missing = [
            (blocks.is_none(), Why::NotCounted),
            (waits.is_none(), Why::WaitsNotWatched),
            (cost.is_none(), Why::CostNotMeasured),
            (busy_ns.is_none(), Why::NoBusyTime),
        ];
        let why = missing.into_iter().find(|(is_missing, _)| *is_missing).map(|(_, why)| why);
        let answer = match all_percent {
            Some(all) if all.at_most < worth_percent => Answer::No,
            Some(all) if all.estimate < worth_percent => Answer::Unlikely,
            Some(_) => Answer::Perhaps,
            // The waits alone may take at least `worth_percent`.
            None if waits_percent.is_some_and(|waits| waits >= worth_percent) => Answer::Perhaps,
            None => Answer::Unknown,
        };
        let why = why.filter(|_| answer == Answer::Unknown);
        Self { answer, why, waits_percent, visits_percent, all_percent }
    }
}

/// Number of blocks that left zones or came back to zones in the interval. `None` if the tracepoint of blocks
/// that left zones, or of blocks that came back, was not counted.
fn blocks(view: &View) -> Option<f64> {
    let total = view.counted.as_ref()?.total;
    let per_s = total.refilled_blocks_per_s? + total.drained_blocks_per_s?;
    Some(per_s * view.interval_ns as f64 / 1e9)
}

/// The largest batch of page sets outside the zones `DMA` and `DMA32`, or else of all page sets. The function
/// returns 1 if there is no page set.
fn batch(view: &View) -> f64 {
    let large = |zone: &str| ![ZoneKind::Dma.name(), ZoneKind::Dma32.name()].contains(&zone);
    let sets = view.pagesets.iter();
    let batches = sets.clone().filter(|set| large(set.zone)).map(|set| set.batch).max();
    f64::from(batches.or_else(|| sets.map(|set| set.batch).max()).unwrap_or(1).max(1))
}

#[cfg(test)]
mod tests {
    use pageset_trace::CostRange;

    use super::*;
    use crate::view::{Counted, CpuRates, PagesetView, Totals};
    use crate::zone_lock::ZoneLockView;

    /// A visit costs 2 us and moves 50 pages.
    fn cost() -> VisitCost {
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

    /// Makes a view of one second on a machine with two CPUs, one of them busy.
    fn view(blocks_per_s: f64, wait_percent: f64) -> View {
        let rates = CpuRates {
            refilled_blocks_per_s: Some(blocks_per_s),
            drained_blocks_per_s: Some(0.0),
            ..CpuRates::default()
        };
        let set = PagesetView {
            node: 0,
            zone: "Normal",
            cpu: 0,
            count: 1,
            change: None,
            high: 9,
            high_min: None,
            high_max: None,
            batch: 50,
            unchanged_ns: 0,
        };
        View {
            interval_ns: 1_000_000_000,
            busy_ns: Some(1_000_000_000),
            totals: Totals {
                cpus: 2,
                pcp_pages: 1,
                free_pages: 1,
                allocated_pages_per_s: None,
                freed_pages_per_s: None,
            },
            zones: Vec::new(),
            pagesets: vec![set],
            counted: Some(Counted { total: rates, cpus: Vec::new() }),
            zone_lock: Some(ZoneLockView { waits_per_s: 1.0, wait_percent, callers: Vec::new(), lost: 0 }),
            verdict: None,
            missing: Vec::new(),
        }
    }

    fn of(view: &View) -> (Answer, Option<Why>) {
        let verdict = Verdict::of(view, Some(&cost()), 1.0);
        (verdict.answer, verdict.why)
    }

    #[test]
    fn little_is_a_no_and_much_a_perhaps() {
        assert_eq!(of(&view(1000.0, 0.1)), (Answer::No, None));
        assert_eq!(of(&view(1000.0, 0.5)), (Answer::Perhaps, None), "half of all is one of what was busy");
        assert_eq!(of(&view(1e6, 0.0)), (Answer::Perhaps, None));
        assert_eq!(of(&view(100_000.0, 0.0)), (Answer::Unlikely, None), "0.4 % if each visit moves a batch");
        let all = Verdict::of(&view(100_000.0, 0.25), Some(&cost()), 1.0).all_percent.unwrap();
        assert!((all.estimate - 0.9).abs() < 1e-9 && (all.at_most - 25.5).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn what_was_not_measured_is_unknown() {
        let full = view(1000.0, 0.1);
        let unknown = |why| (Answer::Unknown, Some(why));
        assert_eq!(of(&View { counted: None, ..full.clone() }), unknown(Why::NotCounted));
        assert_eq!(of(&View { zone_lock: None, ..full.clone() }), unknown(Why::WaitsNotWatched));
        let lost = full.zone_lock.clone().map(|zone_lock| ZoneLockView { lost: 1, ..zone_lock });
        assert_eq!(of(&View { zone_lock: lost, ..full.clone() }), unknown(Why::WaitsNotWatched));
        assert_eq!(of(&View { busy_ns: None, ..full.clone() }), unknown(Why::NoBusyTime));
        let verdict = Verdict::of(&full, None, 1.0);
        assert_eq!((verdict.answer, verdict.why), unknown(Why::CostNotMeasured));
        assert_eq!(verdict.visits_percent, None, "unknown is not zero");
        let waits = Verdict::of(&view(1000.0, 5.0), None, 1.0);
        assert_eq!((waits.answer, waits.why), (Answer::Perhaps, None), "waits alone are enough");
    }
}
