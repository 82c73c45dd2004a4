//! How much recording slows the recorded command down.

use serde::{Deserialize, Serialize};

/// How much longer a command takes while it is recorded. The cost is measured with pairs of runs: one run
/// with a recorder, and one run without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingCost {
    /// Number of pairs of runs.
    pub rounds: u32,
    /// Additional elapsed time, in per cent.
    pub wall_percent: Option<CostRange>,
    /// Additional CPU time of the whole machine in per cent, including the recorder's CPU time.
    pub cpu_percent: Option<CostRange>,
}

/// Minimum, median and maximum of several values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostRange {
    /// Smallest value.
    pub min: f64,
    /// The median. If the number of values is even, the larger of the two middle values is used.
    pub median: f64,
    /// Largest value.
    pub max: f64,
}

impl CostRange {
    /// Whether the measurement is uncertain. A measurement is uncertain if its range includes 0, or if the
    /// ends of the range differ by more than a factor of three.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.min <= 0.0 || self.max > 3.0 * self.min
    }

    /// Returns the range of `values`, which this function sorts. `None` if there are no values.
    #[must_use]
    pub fn of(values: &mut [f64]) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        Some(Self { min, median: values[values.len() / 2], max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_middle() {
        assert_eq!(CostRange::of(&mut []), None);
        assert_eq!(CostRange::of(&mut [3.0, 1.0, 2.0]), Some(CostRange { min: 1.0, median: 2.0, max: 3.0 }));
    }
}
