//! What allocators are compared by, and which goal ours was given for each.

use pageset_report::Spread;

use super::grid::Found;
use crate::simulate::RunResult;

/// One figure, and the goal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) name: &'static str,
    /// In words, beside Linux's.
    pub(super) goal: &'static str,
    of_ours: fn(&RunResult) -> f64,
    of_linux: fn(&RunResult) -> f64,
    /// Which part of Linux's figure ours may reach, or has to.
    limit: Limit,
    /// What is added to both figures before one is divided by the other, since either may be 0.
    added: f64,
}

/// Added to counts.
const ONE: f64 = 1.0;
/// Added to shares of time, in percent.
const LITTLE: f64 = 0.001;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// At most this part of it.
    AtMost(f64),
    /// At least as much, as far as seeds tell.
    AtLeast,
}

/// The axes.
pub(super) const AXES: [Axis; 10] = [
    Axis {
        name: "visits to shared state",
        goal: "never more",
        of_ours: |run| run.shared.visits as f64,
        of_linux: |run| run.shared.visits as f64,
        limit: Limit::AtMost(1.0),
        added: ONE,
    },
    Axis {
        name: "lines, beside visits",
        goal: "never more",
        of_ours: |run| run.shared.lines() as f64,
        of_linux: |run| run.shared.visits as f64,
        limit: Limit::AtMost(1.0),
        added: ONE,
    },
    Axis {
        name: "time for shared state",
        goal: "never more",
        of_ours: shared_percent,
        of_linux: shared_percent,
        limit: Limit::AtMost(1.0),
        added: LITTLE,
    },
    Axis {
        name: "pages held, mean",
        goal: "at most half",
        of_ours: |run| run.shared.held_mean,
        of_linux: |run| run.shared.held_mean,
        limit: Limit::AtMost(0.5),
        added: ONE,
    },
    Axis {
        name: "pages held after two idle ticks",
        goal: "at most Linux's after 30",
        of_ours: |run| run.shared.held_after_two_ticks as f64,
        of_linux: |run| run.pcp_pages_idle as f64,
        limit: Limit::AtMost(1.0),
        added: ONE,
    },
    Axis {
        name: "whole pageblocks at the end",
        goal: "never fewer",
        of_ours: |run| run.shared.whole_at_end as f64,
        of_linux: |run| run.shared.whole_at_end as f64,
        limit: Limit::AtLeast,
        added: ONE,
    },
    Axis {
        name: "whole pageblocks, load gone",
        goal: "never fewer",
        of_ours: |run| run.shared.whole_when_gone as f64,
        of_linux: |run| run.shared.whole_when_gone as f64,
        limit: Limit::AtLeast,
        added: ONE,
    },
    Axis {
        name: "fallbacks",
        goal: "never more",
        of_ours: |run| run.shared.fallbacks as f64,
        of_linux: |run| run.shared.fallbacks as f64,
        limit: Limit::AtMost(1.0),
        added: ONE,
    },
    Axis {
        name: "score",
        goal: "never less",
        of_ours: |run| run.score_per_s,
        of_linux: |run| run.score_per_s,
        limit: Limit::AtLeast,
        added: 0.0,
    },
    Axis {
        name: "p99.9 of an allocation",
        goal: "at most a third",
        of_ours: |run| run.alloc_p999_ns,
        of_linux: |run| run.alloc_p999_ns,
        limit: Limit::AtMost(1.0 / 3.0),
        added: 0.0,
    },
];

/// Time that CPUs waited for zones' locks and held them, or until lines of the allocator's were there; in percent.
pub(super) fn shared_percent(run: &RunResult) -> f64 {
    run.zone_lock_percent + run.shared.line_percent
}

/// Ours beside one of Linux's at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Match {
    pub(super) is_met: bool,
    /// Ours as a part of Linux's.
    pub(super) ratio: f64,
}

impl Axis {
    /// Compares the means over all seeds; `None` without results.
    pub(super) fn compare(&self, found: &Found, ours: &str, linux: &str) -> Option<Match> {
        let spread = |policy: &str, figure: fn(&RunResult) -> f64| {
            Spread::of(&found.of(policy).iter().map(figure).collect::<Vec<_>>())
        };
        let (ours, linux) = (spread(ours, self.of_ours)?, spread(linux, self.of_linux)?);
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
    }
}
