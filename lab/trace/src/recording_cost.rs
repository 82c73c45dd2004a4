//! The cost of recording for the recorded command.

use serde::{Deserialize, Serialize};

/// How much longer a command takes while it is recorded, measured in pairs of runs with and without a
/// recorder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingCost {
    /// Pairs of runs.
    pub rounds: u32,
    /// Additional elapsed time, in per cent.
    pub wall_percent: Option<CostRange>,
    /// Additional CPU time of the whole machine, including the recorder's, in per cent.
    pub cpu_percent: Option<CostRange>,
}

/// Minimum, median and maximum of some values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostRange {
    /// Smallest value.
    pub min: f64,
    /// The median. If the number of values is even, this is the larger of the two middle values.
    pub median: f64,
    /// Largest value.
    pub max: f64,
}

impl CostRange {
    /// Whether the measurement is uncertain: its range includes 0, or the ends of the range differ by more
    /// than a factor of three.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.min <= 0.0 || self.max > 3.0 * self.min
    }

    /// The range of `values`, which are sorted here. `None` if there are no values.
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
