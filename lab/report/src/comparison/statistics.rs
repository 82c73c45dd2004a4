//! Statistics of the agreement between two lists of numbers.

/// Spearman's rank correlation of pairs. The correlation is 1 for the same order and -1 for the opposite
/// order. Equal values share the mean of their ranks. `None` for fewer than two pairs, and for values that
/// are not finite. The function also returns `None` if all values of one side are equal, because equal values
/// have no order.
///
/// Time: O(n log n).
#[must_use]
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 2 || pairs.iter().any(|(left, right)| !left.is_finite() || !right.is_finite()) {
        return None;
    }
    let (left, right): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    pearson(&ranks(&left), &ranks(&right))
}

/// The largest possible rank correlation if some of the left values are equal. The right values reach this
/// correlation if they all differ and have the order of the left values. `None` if [`spearman`] returns
/// `None`.
pub(super) fn ceiling(pairs: &[(f64, f64)]) -> Option<f64> {
    let mut left: Vec<_> = pairs.iter().map(|(left, _)| *left).collect();
    left.sort_by(f64::total_cmp);
    let ordered: Vec<_> = left.into_iter().zip((0_u32..).map(f64::from)).collect();
    spearman(&ordered)
}

/// The rank of each value, from 1. Equal values have the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = (0..values.len()).collect();
    order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
    let mut ranks = vec![0.0; values.len()];
    // Compare by `==` and not by `total_cmp`, so that 0 and -0 are equal.
    let mut before = 0;
    for tied in order.chunk_by(|&left, &right| values[left] == values[right]) {
        let mean = before as f64 + (tied.len() as f64 + 1.0) / 2.0;
        tied.iter().for_each(|&index| ranks[index] = mean);
        before += tied.len();
    }
    ranks
}

/// Linear correlation of two lists. `None` if all values of one list are equal.
fn pearson(left: &[f64], right: &[f64]) -> Option<f64> {
    let count = left.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let (left_mean, right_mean) = (mean(left), mean(right));
    let mut products = 0.0;
    let mut left_squares = 0.0;
    let mut right_squares = 0.0;
    for (left, right) in left.iter().zip(right) {
        products += (left - left_mean) * (right - right_mean);
        left_squares += (left - left_mean).powi(2);
        right_squares += (right - right_mean).powi(2);
    }
    let scale = (left_squares * right_squares).sqrt();
    (scale > 0.0).then(|| (products / scale).clamp(-1.0, 1.0))
}

/// The direction of a value's change from its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The value is smaller than its base.
    Down,
    /// The value differs from its base by at most the band.
    Same,
    /// The value is larger than its base.
    Up,
}

/// The largest change from the base that counts as no change.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Band {
    /// A change in percent of the base.
    Percent(f64),
    /// A change in the value's own unit, for shares, which are percentages themselves.
    Points(f64),
}

impl Band {
    /// The width of the band, in percent or in points.
    pub(super) const fn width(self) -> f64 {
        match self {
            Self::Percent(width) | Self::Points(width) => width,
        }
    }

    /// Widens the band, so that it is at least as wide as the printed standard deviations of both values,
    /// added in quadrature. Shares have no printed deviations.
    pub(super) fn with_variation(self, base_percent: Option<f64>, percent: Option<f64>) -> Self {
        match self {
            Self::Percent(width) => {
                Self::Percent(base_percent.unwrap_or(0.0).hypot(percent.unwrap_or(0.0)).max(width))
            }
            Self::Points(_) => self,
        }
    }

    /// The change from `base` to `value`, in the unit of the band.
    pub(super) fn size(self, base: f64, value: f64) -> f64 {
        match self {
            Self::Percent(_) => (value / base - 1.0) * 100.0,
            Self::Points(_) => value - base,
        }
    }
}

impl Direction {
    /// The direction from `base` to `value`. A change that is exactly as wide as the band counts as no
    /// change.
    #[must_use]
    pub fn of(base: f64, value: f64, band: Band) -> Self {
        let width = match band {
            Band::Percent(percent) => base.abs() * percent / 100.0,
            Band::Points(points) => points,
        };
        let change = value - base;
        // Printed values are rounded. A change of exactly 2.0 percent of 100 must not exceed the band because
        // of a rounding error.
        let width = width + base.abs() * 1e-9;
        if change > width {
            Self::Up
        } else if change < -width {
            Self::Down
        } else {
            Self::Same
        }
    }
}

/// The distance of `ours` from `published`, divided by `published`. `None` if `published` is 0.
#[must_use]
pub fn relative_error(published: f64, ours: f64) -> Option<f64> {
    let error = ((ours - published) / published).abs();
    error.is_finite().then_some(error)
}

/// The middle value, or the mean of the two middle values. `None` without values.
#[must_use]
pub(super) fn median(values: &[f64]) -> Option<f64> {
    crate::Spread::of(values).map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn correlates(left: &[f64], right: &[f64], expected: Option<f64>) {
        let pairs: Vec<_> = left.iter().copied().zip(right.iter().copied()).collect();
        let found = spearman(&pairs);
        let close = match (found, expected) {
            (Some(found), Some(expected)) => (found - expected).abs() < 1e-12,
            (found, expected) => found == expected,
        };
        assert!(close, "{found:?} is not {expected:?}");
    }

    #[test]
    fn ranks_without_ties_follow_the_textbook_formula() {
        // The formula is 1 - 6 * sum(d^2) / (n * (n^2 - 1)). Ranks differ by 1, -1, 2, -1, -1, so the result
        // is 1 - 6 * 8 / 120.
        correlates(&[1.0, 2.0, 3.0, 4.0, 5.0], &[20.0, 10.0, 50.0, 30.0, 40.0], Some(0.6));
        correlates(&[1.0, 2.0, 3.0], &[9.0, 5.0, 1.0], Some(-1.0));
        correlates(&[1.0, 2.0, 3.0], &[1.0, 100.0, 10_000.0], Some(1.0));
    }

    #[test]
    fn ties_share_the_mean_of_their_ranks() {
        assert_eq!(ranks(&[7.0, 3.0, 7.0, 1.0, 7.0]), [4.0, 2.0, 4.0, 1.0, 4.0]);
        assert_eq!(ranks(&[0.0, -0.0]), [1.5, 1.5]);
        // The ranks are 1, 2.5, 2.5, 4 and 1, 2, 3, 4. The sum of products is 4.5, and the sums of squares
        // are 4.5 and 5.
        correlates(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0], Some(4.5 / (4.5_f64 * 5.0).sqrt()));
    }

    #[test]
    fn without_an_order_there_is_no_correlation() {
        correlates(&[2.0, 2.0, 2.0], &[1.0, 2.0, 3.0], None);
        correlates(&[1.0], &[1.0], None);
        correlates(&[1.0, f64::NAN], &[1.0, 2.0], None);
        correlates(&[], &[], None);
    }

    #[test]
    fn nothing_distinct_exceeds_the_ceiling() {
        assert_eq!(ceiling(&[(1.0, 9.0), (3.0, 5.0), (2.0, 1.0)]), Some(1.0));
        assert_eq!(ceiling(&[(2.0, 1.0), (2.0, 2.0)]), None);
        // The ranks are 1, 3, 3, 3 and 1, 2, 3, 4. The sum of products is 3, and the sums of squares are 3
        // and 5.
        let tied = ceiling(&[(0.0, 7.0), (2.0, 6.0), (2.0, 8.0), (2.0, 9.0)]).unwrap();
        assert!((tied - 3.0 / 15.0_f64.sqrt()).abs() < 1e-12, "{tied}");
    }

    #[test]
    fn directions_have_a_band() {
        for (base, value, band, expected) in [
            (100.0, 103.0, Band::Percent(2.0), Direction::Up),
            (100.0, 102.0, Band::Percent(2.0), Direction::Same),
            (100.0, 97.9, Band::Percent(2.0), Direction::Down),
            (0.0, 0.0, Band::Percent(2.0), Direction::Same),
            (0.0, 0.1, Band::Percent(2.0), Direction::Up),
            (-100.0, -103.0, Band::Percent(2.0), Direction::Down),
            (4.0, 3.0, Band::Points(1.0), Direction::Same),
            (4.0, 2.0, Band::Points(1.0), Direction::Down),
        ] {
            assert_eq!(Direction::of(base, value, band), expected, "{base} {value} {band:?}");
        }
    }

    #[test]
    fn errors_are_relative_to_what_is_published() {
        assert_eq!(relative_error(50.0, 40.0), Some(0.2));
        assert_eq!(relative_error(0.0, 1.0), None);
    }

    proptest! {
        #[test]
        fn a_rising_function_changes_nothing(values in prop::collection::vec((-1e3..1e3_f64, -1e3..1e3_f64), 2..40)) {
            let moved: Vec<_> = values.iter().map(|(x, y)| (x.powi(3) + 7.0, (y / 500.0).exp())).collect();
            let (before, after) = (spearman(&values), spearman(&moved));
            match (before, after) {
                (Some(before), Some(after)) => prop_assert!((before - after).abs() < 1e-9),
                (before, after) => prop_assert_eq!(before, after),
            }
        }

        #[test]
        fn it_is_symmetric_and_bounded(values in prop::collection::vec((0_u8..5, 0_u8..5), 0..30)) {
            let pairs: Vec<_> = values.iter().map(|(x, y)| (f64::from(*x), f64::from(*y))).collect();
            let swapped: Vec<_> = pairs.iter().map(|(x, y)| (*y, *x)).collect();
            let (one, other) = (spearman(&pairs), spearman(&swapped));
            prop_assert!(one.is_none_or(|value| (-1.0..=1.0).contains(&value)));
            prop_assert_eq!(one.map(|value| (value * 1e9).round()), other.map(|value| (value * 1e9).round()));
        }

        #[test]
        fn ranks_add_up(values in prop::collection::vec(0_u8..6, 0..40)) {
            let values: Vec<_> = values.into_iter().map(f64::from).collect();
            let count = values.len() as f64;
            let ranks = ranks(&values);
            prop_assert!((ranks.iter().sum::<f64>() - count * (count + 1.0) / 2.0).abs() < 1e-9);
            // The rank of a value is the number of smaller values, plus half the number of equal values, plus
            // a half.
            for (value, rank) in values.iter().zip(&ranks) {
                let smaller = values.iter().filter(|other| *other < value).count() as f64;
                let equal = values.iter().filter(|other| *other == value).count() as f64;
                prop_assert_eq!(*rank, smaller + (equal + 1.0) / 2.0);
            }
        }

        #[test]
        fn a_mirrored_change_has_the_mirrored_direction(base in 1.0..1e6_f64, change in -0.5..0.5_f64, band in 0.0..10.0_f64) {
            let band = Band::Percent(band);
            let (up, down) = (Direction::of(base, base * (1.0 + change), band), Direction::of(base, base * (1.0 - change), band));
            let mirrored = match up {
                Direction::Up => Direction::Down,
                Direction::Same => Direction::Same,
                Direction::Down => Direction::Up,
            };
            prop_assert_eq!(down, mirrored);
        }
    }
}
