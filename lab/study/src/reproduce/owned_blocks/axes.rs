//! The figures that compare allocators, and our allocator's goal for each.

use pageset_report::Spread;

use super::grid::Found;
use crate::simulate::{RunResult, SharedUse};

/// A figure of one run.
pub(super) type Figure = fn(&RunResult) -> f64;

/// One figure, and our allocator's goal for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) name: &'static str,
    /// The goal in words, beside Linux's figure.
    pub(super) goal: &'static str,
    of_ours: Figure,
    of_linux: Figure,
    /// The part of Linux's figure that our allocator may reach, or has to reach.
    limit: Limit,
    /// A number added to both figures before the division, since either may be 0.
    added: f64,
}

/// Number added to counts.
const ONE: f64 = 1.0;
/// Number added to shares of time, in percent.
const LITTLE: f64 = 0.001;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Our figure is at most this part of Linux's figure.
    AtMost(f64),
    /// Our figure is at least Linux's figure, as far as the seeds tell.
    AtLeast,
}

/// The axes.
pub(super) const AXES: [Axis; 13] = [
    Axis::of("visits to shared state", "never more", |run| run.shared.visits as f64, Limit::AtMost(1.0), ONE),
    // An allocator that does more work in the same time has more reason to visit.
    Axis::of("visits, for as much work", "never more", visits_for_work, Limit::AtMost(1.0), ONE),
    Axis::of(
        "visits and all lines that passed",
        "never more",
        |run| visits_and_passed(&run.shared) as f64,
        Limit::AtMost(1.0),
        ONE,
    ),
    Axis {
        of_linux: |run| run.shared.visits as f64,
        ..Axis::of(
            "lines, beside visits",
            "never more",
            |run| run.shared.lines() as f64,
            Limit::AtMost(1.0),
            ONE,
        )
    },
    Axis::of("time for shared state", "never more", shared_percent, Limit::AtMost(1.0), LITTLE),
    Axis::of("pages held, mean", "at most half", |run| run.shared.held_mean, Limit::AtMost(0.5), ONE),
    Axis {
        of_linux: |run| run.pcp_pages_idle as f64,
        ..Axis::of(
            "pages held after two idle ticks",
            "at most Linux's after 30",
            |run| run.shared.held_after_two_ticks as f64,
            Limit::AtMost(1.0),
            ONE,
        )
    },
    Axis::of(
        "whole pageblocks at the end",
        "never fewer",
        |run| run.shared.whole_at_end as f64,
        Limit::AtLeast,
        ONE,
    ),
    // A goal for any number of pages in use at the last moment.
    Axis::of(
        "free pages outside whole pageblocks",
        "never more",
        |run| run.shared.apart_at_end as f64,
        Limit::AtMost(1.0),
        ONE,
    ),
    Axis::of(
        "whole pageblocks, load gone",
        "never fewer",
        |run| run.shared.whole_when_gone as f64,
        Limit::AtLeast,
        ONE,
    ),
    Axis::of("fallbacks", "never more", |run| run.shared.fallbacks as f64, Limit::AtMost(1.0), ONE),
    Axis::of("score", "never less", |run| run.score_per_s, Limit::AtLeast, 0.0),
    Axis::of(
        "p99.9 of an allocation",
        "at most a third",
        |run| run.alloc_p999_ns,
        Limit::AtMost(1.0 / 3.0),
        0.0,
    ),
];

/// Visits for each million units of work done in a second.
fn visits_for_work(run: &RunResult) -> f64 {
    1e6 * run.shared.visits as f64 / run.score_per_s
}

/// Visits that there would be if each line that passed between CPUs were contended.
fn visits_and_passed(shared: &SharedUse) -> u64 {
    shared.visits - shared.contended_lines + shared.line_transfers
}

/// Time that CPUs waited for zones' locks and held them, or waited for the allocator's lines, in percent.
pub(super) fn shared_percent(run: &RunResult) -> f64 {
    run.zone_lock_percent + run.shared.line_percent
}

/// Our allocator beside one of Linux's policies at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Match {
    pub(super) is_met: bool,
    /// Our figure as a part of Linux's.
    pub(super) ratio: f64,
}

/// A figure over all runs of an allocator; `None` without results.
pub(super) fn spread(results: &[RunResult], figure: Figure) -> Option<Spread> {
    Spread::of(&results.iter().map(figure).collect::<Vec<_>>())
}

impl Axis {
    /// Makes an axis that takes the same figure from both allocators.
    const fn of(name: &'static str, goal: &'static str, figure: Figure, limit: Limit, added: f64) -> Self {
        Self { name, goal, of_ours: figure, of_linux: figure, limit, added }
    }

    /// Compares the means over all seeds. Returns `None` without results.
    pub(super) fn compare(&self, found: &Found, ours: &str, linux: &str) -> Option<Match> {
        let ours = spread(found.of(ours), self.of_ours)?;
        let linux = spread(found.of(linux), self.of_linux)?;
        let is_met = match self.limit {
            Limit::AtMost(part) => ours.mean <= linux.mean * part,
            Limit::AtLeast => ours.mean >= linux.mean || !ours.is_apart_from(&linux) && ours.runs > 1,
        };
        Some(Match { is_met, ratio: (ours.mean + self.added) / (linux.mean + self.added) })
    }

    /// Whether a larger figure is better.
    pub(super) fn is_better_above(&self) -> bool {
        self.limit == Limit::AtLeast
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::tests::found;
    use super::super::grid::{BASE, OWNED_BLOCKS};
    use super::*;

    fn result(score_per_s: f64, held_mean: f64) -> RunResult {
        let mut result = RunResult { score_per_s, ..RunResult::default() };
        result.shared.held_mean = held_mean;
        result
    }

    #[test]
    fn a_goal_is_met_or_not() {
        let matched = |name: &str, ours: RunResult, linux: RunResult| {
            let found =
                found("w", |policy| if policy == OWNED_BLOCKS { ours.clone() } else { linux.clone() });
            let axis = AXES.iter().find(|axis| axis.name == name).unwrap();
            axis.compare(&found, OWNED_BLOCKS, BASE).unwrap()
        };
        assert!(matched("score", result(100.0, 0.0), result(100.0, 0.0)).is_met);
        assert_eq!(
            matched("score", result(100.0, 0.0), result(200.0, 0.0)),
            Match { is_met: false, ratio: 0.5 }
        );
        assert!(matched("pages held, mean", result(1.0, 50.0), result(1.0, 100.0)).is_met);
        assert!(!matched("pages held, mean", result(1.0, 51.0), result(1.0, 100.0)).is_met);
        assert!(matched("fallbacks", result(1.0, 0.0), result(1.0, 0.0)).is_met, "none beside none");
        let busy = RunResult { shared: SharedUse { visits: 30, ..SharedUse::default() }, ..result(4.0, 0.0) };
        let slow = RunResult { shared: SharedUse { visits: 10, ..SharedUse::default() }, ..result(1.0, 0.0) };
        assert!(!matched("visits to shared state", busy.clone(), slow.clone()).is_met);
        assert!(matched("visits, for as much work", busy, slow.clone()).is_met);
        let shared = SharedUse { visits: 5, contended_lines: 2, line_transfers: 7, ..SharedUse::default() };
        let passes = RunResult { shared, ..result(1.0, 0.0) };
        assert!(matched("visits to shared state", passes.clone(), slow.clone()).is_met);
        assert_eq!(matched("visits and all lines that passed", passes, slow).ratio, 1.0);
    }
}
