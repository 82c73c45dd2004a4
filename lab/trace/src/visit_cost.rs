//! The cost of zone visits on the recorded machine, measured before the recording.

use serde::{Deserialize, Serialize};

use crate::recording_cost::CostRange;

/// CPU time of a zone visit, measured with a loop of page faults under two limits of page sets. Only the
/// limit differs between the two runs, so the visits cause the whole difference in CPU time. The cost per
/// visit is the difference in CPU time divided by the number of additional visits. The cost per page is the
/// difference in CPU time between the two runs, divided by the additional pages that visits moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VisitCost {
    /// CPU time of a visit in nanoseconds, including the time to move its pages.
    pub visit_ns: CostRange,
    /// CPU time of a visit, divided by the pages that the visit moves, in nanoseconds.
    pub page_ns: CostRange,
    /// Pages per visit during the measurement.
    pub pages_per_visit: f64,
    /// Number of pairs of runs.
    pub rounds: u32,
    /// The CPU's model.
    pub cpu: String,
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// Day of the measurement in UTC, such as 2026-11-26.
    pub date: String,
}

impl VisitCost {
    /// Whether the numbers are possible. A damaged file may contain impossible numbers.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        [self.visit_ns, self.page_ns].iter().all(|range| {
            let values = [range.min, range.median, range.max];
            values.iter().all(|value| value.is_finite()) && values.is_sorted() && range.median > 0.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_a_range_in_order() {
        let range = |min, median, max| CostRange { min, median, max };
        let cost = |visit_ns| VisitCost {
            visit_ns,
            page_ns: range(30.0, 31.0, 32.0),
            pages_per_visit: 63.0,
            rounds: 7,
            cpu: "x".into(),
            kernel: "6.18".into(),
            date: "2026-11-26".into(),
        };
        // Noise can make the minimum negative.
        assert!(cost(range(-5.0, 2.0, 9.0)).is_sound());
        for wrong in [range(3.0, 2.0, 9.0), range(-9.0, -2.0, 9.0), range(1.0, f64::NAN, 2.0)] {
            assert!(!cost(wrong).is_sound(), "{wrong:?}");
        }
    }
}
