//! The forecast for one setting or kernel, compared with the recorded kernel.

use pageset_core::Policy;
use serde::{Deserialize, Serialize};

use super::findings::Evidence;
use crate::{Candidate, Outcome};

/// One row: a forecast, and its 80 % interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Forecast {
    /// The name of the forecast's policy, if it is not the recorded kernel's policy.
    pub kernel: Option<String>,
    /// The settings that differ from the recorded settings, in the form that `sysctl` takes. Empty if no
    /// setting differs.
    pub settings: String,
    /// Number of refills and drains.
    pub visits: u64,
    /// The 80 % interval of `visits`.
    pub visits_range: Range,
    /// The 80 % interval in percent of the recorded kernel's visits; `None` if that kernel made no visits.
    pub visits_percent: Option<(f64, f64)>,
    /// The least and the most CPU time that the change to this setting or kernel saves, in percent. `None` if
    /// the cost of a visit is not known.
    pub saved_percent: Option<(f64, f64)>,
    /// The largest number of pages that page sets held at one time.
    pub held_pages_peak: u64,
    /// Number of pages in page sets after a minute without allocations and frees.
    pub held_pages_idle: u64,
    /// Whether this setting would stop the kernel from tuning the limits of its page sets.
    pub ends_tuning: bool,
}

/// The lower and the upper end of an interval. Both ends belong to the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The lower end.
    pub low: u64,
    /// The upper end.
    pub high: u64,
}

impl Forecast {
    /// Makes the row. The result is `None` if the recording does not show the recorded kernel's visits, or if
    /// the outcome has no interval.
    pub(super) fn new(
        candidate: &Candidate,
        outcome: &Outcome,
        findings: &Evidence,
        recorded: Option<&Policy>,
    ) -> Option<Self> {
        let (visits, now) = (outcome.interval?.visits, findings.visits?);
        let is_recorded = recorded.is_some_and(|recorded| recorded.name == candidate.policy.name);
        let fraction = candidate.settings.percpu_pagelist_high_fraction;
        let of_recorded = |value: u64| 100.0 * value as f64 / now as f64;
        Some(Self {
            kernel: (!is_recorded).then(|| candidate.policy.name.to_owned()),
            settings: candidate.settings.to_string(),
            visits: outcome.visits(),
            visits_range: Range { low: visits.0, high: visits.1 },
            visits_percent: (now > 0).then(|| (of_recorded(visits.0), of_recorded(visits.1))),
            saved_percent: if now > 0 {
                findings.spending.saved_percent((visits.0 as f64 / now as f64, visits.1 as f64 / now as f64))
            } else {
                None
            },
            held_pages_peak: outcome.pcp_pages_peak,
            held_pages_idle: outcome.pcp_pages_idle,
            ends_tuning: candidate.policy.tuning.is_some() && fraction.is_some_and(|fraction| fraction > 0),
        })
    }

    /// Whether the whole interval of the forecast's visits lies below `visits`, the recorded kernel's number.
    #[must_use]
    pub fn is_less(&self, visits: u64) -> bool {
        self.visits_range.high < visits
    }

    /// Whether the intervals of the visits in both forecasts overlap.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.visits_range.low <= other.visits_range.high && other.visits_range.low <= self.visits_range.high
    }
}
