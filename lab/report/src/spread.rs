//! Statistics of several runs of one measurement.

use serde::Serialize;

/// Median, extreme values and variation of a set of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Number of values.
    pub runs: u64,
    /// Smallest value.
    pub min: f64,
    /// Middle value. If the number of values is even, this is the mean of the two middle values.
    pub median: f64,
    /// Largest value.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (divided by runs - 1). 0 for a single run.
    pub stddev: f64,
}

impl Spread {
    /// Computes the spread of `values`. `None` if there are no values, or if a value is not finite.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let middle = count / 2;
        let median =
            if count % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let stddev = if count == 1 { 0.0 } else { (squares / (count - 1) as f64).sqrt() };
        Some(Self { runs: count as u64, min: sorted[0], median, max: sorted[count - 1], mean, stddev })
    }

    /// Standard deviation in percent of the mean. `None` if the mean is 0.
    #[must_use]
    pub fn stddev_percent(&self) -> Option<f64> {
        (self.mean != 0.0).then(|| self.stddev / self.mean.abs() * 100.0)
    }

    /// Whether all runs of `self` are on the same side of all runs of `other`.
    ///
    /// With at least four runs on each side, chance alone separates the runs in less than 3 % of cases (2 of
    /// 70 orders).
    #[must_use]
    pub fn is_apart_from(&self, other: &Self) -> bool {
        self.max < other.min || other.max < self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_and_even_medians() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]).map(|spread| spread.median), Some(2.0));
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).map(|spread| spread.median), Some(2.5));
    }

    #[test]
    fn deviation_is_that_of_a_sample() {
        let spread = Spread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((spread.runs, spread.min, spread.max, spread.mean), (8, 2.0, 9.0, 5.0));
        assert!((spread.stddev - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_run_has_no_deviation_and_none_has_no_spread() {
        assert_eq!(Spread::of(&[7.0]).unwrap().stddev_percent(), Some(0.0));
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
        assert_eq!(Spread::of(&[0.0]).unwrap().stddev_percent(), None);
    }

    #[test]
    fn touching_ranges_are_not_apart() {
        let low = Spread::of(&[1.0, 2.0]).unwrap();
        assert!(low.is_apart_from(&Spread::of(&[3.0]).unwrap()));
        assert!(Spread::of(&[3.0]).unwrap().is_apart_from(&low));
        assert!(!low.is_apart_from(&Spread::of(&[2.0, 3.0]).unwrap()));
    }
}
