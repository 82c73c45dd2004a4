//! Measures how well our values agree with the published values.

use serde::Serialize;

use super::statistics::{Direction, ceiling, median, relative_error, spearman};
use super::{Band, Comparison, Pair};
use crate::Origin;

/// The direction of a change from the base row, in the published values and in ours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The published direction.
    pub published: Direction,
    /// Our direction.
    pub ours: Direction,
    /// The largest change that counts as no change.
    pub band: Band,
}

impl Change {
    /// Whether our direction equals the published direction.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.published == self.ours
    }
}

/// The agreement of one quantity, or of all quantities of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Rank correlation of published values and ours. For a table, this is the mean of the correlations of
    /// its quantities. `None` if there are fewer than two pairs, or if all values of one side are equal.
    pub spearman: Option<f64>,
    /// The largest rank correlation that our values could reach if they all differ. The ceiling is below 1 if
    /// some published values are equal. The ceiling of a whole table is `None`.
    pub spearman_ceiling: Option<f64>,
    /// Number of pairs whose direction of change from their base row could be compared.
    pub directions: u64,
    /// Number of compared pairs whose published direction equals our direction.
    pub directions_agreed: u64,
    /// Median of the relative errors of all pairs that were not used for fitting.
    pub median_rel_error: Option<f64>,
    /// Number of published values without a value of ours.
    pub missing: u64,
}

impl Agreement {
    /// Fraction of the directions that agree, from 0 to 1. `None` if no direction was compared.
    #[must_use]
    pub fn direction_agreement(&self) -> Option<f64> {
        (self.directions > 0).then(|| self.directions_agreed as f64 / self.directions as f64)
    }
}

impl Comparison {
    /// The agreement of the whole table.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        let all: Vec<_> = (0..self.quantities.len()).map(|column| self.agreement_of(column)).collect();
        let ranked: Vec<_> = all.iter().filter_map(|agreement| agreement.spearman).collect();
        let errors: Vec<_> = (0..self.quantities.len()).flat_map(|column| self.errors(column)).collect();
        let sum = |count: fn(&Agreement) -> u64| all.iter().map(count).sum();
        Agreement {
            spearman: (!ranked.is_empty()).then(|| ranked.iter().sum::<f64>() / ranked.len() as f64),
            spearman_ceiling: None,
            directions: sum(|agreement| agreement.directions),
            directions_agreed: sum(|agreement| agreement.directions_agreed),
            median_rel_error: median(&errors),
            missing: sum(|agreement| agreement.missing),
        }
    }

    /// The agreement of the quantity with this number.
    #[must_use]
    pub fn agreement_of(&self, column: usize) -> Agreement {
        let changes: Vec<_> = (0..self.rows.len()).filter_map(|row| self.change(row, column)).collect();
        let missing = self.pairs(column).filter(|pair| pair.published.is_some() && pair.ours.is_none());
        let ranked = self.ranked(column);
        Agreement {
            spearman: spearman(&ranked),
            spearman_ceiling: ceiling(&ranked),
            directions: changes.len() as u64,
            directions_agreed: changes.iter().filter(|change| change.agrees()).count() as u64,
            median_rel_error: median(&self.errors(column)),
            missing: missing.count() as u64,
        }
    }

    /// The direction of a row's value from the value of its base row. `None` for base rows, and if a value is
    /// missing.
    #[must_use]
    pub fn change(&self, row: usize, column: usize) -> Option<Change> {
        self.change_between(self.rows.get(row)?.base?, row, column)
    }

    /// The direction of the change to this row from the preceding row with the same base row. If no such row
    /// precedes, the direction of the change from the base row. `None` for base rows, and if a value is
    /// missing.
    #[must_use]
    pub fn step(&self, row: usize, column: usize) -> Option<Change> {
        let base = self.rows.get(row)?.base?;
        let before = (base..row).rev().find(|&before| before == base || self.rows[before].base == Some(base));
        self.change_between(before?, row, column)
    }

    fn change_between(&self, before: usize, after: usize, column: usize) -> Option<Change> {
        let (before, after) =
            (self.rows.get(before)?.pairs.get(column)?, self.rows.get(after)?.pairs.get(column)?);
        let band =
            self.quantities[column].band.with_variation(before.variation_percent, after.variation_percent);
        let spread = before.spread.unwrap_or(0.0).hypot(after.spread.unwrap_or(0.0));
        let is_noise = (after.ours? - before.ours?).abs() <= spread;
        Some(Change {
            published: Direction::of(before.published?, after.published?, band),
            ours: if is_noise { Direction::Same } else { Direction::of(before.ours?, after.ours?, band) },
            band,
        })
    }

    /// Returns the values that the rank correlation compares. If there are several base rows, each value is
    /// divided by the value of its base row. Without the division, differences between machines would decide
    /// the ranks.
    fn ranked(&self, column: usize) -> Vec<(f64, f64)> {
        let values = |pair: &Pair| Some((pair.published?, pair.ours?));
        let bases = self.rows.iter().filter(|row| row.base.is_none()).count();
        if bases == 1 {
            return self.pairs(column).filter_map(values).collect();
        }
        let quotients = self.rows.iter().filter_map(|row| {
            let base = values(&self.rows[row.base?].pairs[column])?;
            let value = values(&row.pairs[column])?;
            let quotient = (value.0 / base.0, value.1 / base.1);
            (quotient.0.is_finite() && quotient.1.is_finite()).then_some(quotient)
        });
        quotients.collect()
    }

    /// Relative errors of all pairs that were not used for fitting.
    fn errors(&self, column: usize) -> Vec<f64> {
        let predicted = self.pairs(column).filter(|pair| pair.origin != Origin::Fitted);
        predicted.filter_map(|pair| relative_error(pair.published?, pair.ours?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::super::{Pair, Quantity};
    use super::*;

    #[test]
    fn a_table_is_the_sum_of_its_quantities() {
        let comparison = example();
        // Published scores of 1000, 1170 and 1180 are compared with our values 10, 11 and 10. The published
        // scores rise twice. Our last value is within 2 % of its base, so it counts as unchanged.
        let score = comparison.agreement_of(0);
        assert_eq!((score.directions, score.directions_agreed), (2, 1));
        let share = comparison.agreement_of(1);
        assert_eq!((share.spearman, share.directions_agreed), (Some(1.0), 2));
        // The errors are 4/64, 6/24 and 2/3. The median is the second error.
        assert_eq!(share.median_rel_error, Some(0.25));
        let all = comparison.agreement();
        assert_eq!((all.directions, all.directions_agreed), (4, 3));
        assert_eq!(all.direction_agreement(), Some(0.75));
    }

    #[test]
    fn a_change_within_the_spread_of_seeds_is_none() {
        let row =
            |ours, spread| vec![Pair { spread, ..Pair::new(Some(ours), Some(ours), Origin::Simulated) }];
        let mut comparison =
            Comparison::new("t", "t", "m", vec![Quantity::relative("score", "score", "", 0)]);
        let base = comparison.push_base("base", row(100.0, Some(3.0)));
        comparison.push("one seed", base, row(104.5, None));
        comparison.push("five seeds", base, row(104.5, Some(4.0)));
        let ours = |row| comparison.change(row, 0).unwrap().ours;
        assert_eq!((ours(1), ours(2)), (Direction::Up, Direction::Same));
    }

    #[test]
    fn published_ties_set_a_ceiling() {
        let mut comparison = Comparison::new("t", "t", "m", vec![Quantity::share("share", "share", 0)]);
        let pair = |published, ours| vec![Pair::new(Some(published), Some(ours), Origin::Simulated)];
        let base = comparison.push_base("31", pair(2.0, 2.1));
        for (name, published, ours) in [("63", 2.0, 1.7), ("127", 0.0, 0.6), ("255", 0.0, 0.5)] {
            comparison.push(name, base, pair(published, ours));
        }
        let agreement = comparison.agreement_of(0);
        // The ranks are 3.5, 3.5, 1.5, 1.5 and 4, 3, 2, 1. The sum of products is 4, and the sums of squares
        // are 4 and 5.
        assert!((agreement.spearman.unwrap() - 4.0 / 20.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(agreement.spearman_ceiling, agreement.spearman, "ours falls wherever it can");
    }

    #[test]
    fn rows_of_different_machines_are_ranked_by_their_change() {
        let mut comparison =
            Comparison::new("t", "t", "m", vec![Quantity::relative("score", "score", "", 0)]);
        let pair = |published, ours| vec![Pair::new(Some(published), Some(ours), Origin::Simulated)];
        for (machine, scale, gain) in [("small", 1.0, 0.0), ("large", 100.0, 0.2), ("medium", 10.0, 0.1)] {
            let base = comparison.push_base(machine, pair(1000.0 * scale, 500.0));
            comparison.push(machine, base, pair(1000.0 * scale * (1.0 + gain), 500.0 * (1.0 + gain / 2.0)));
        }
        let agreement = comparison.agreement();
        assert_eq!(agreement.spearman, Some(1.0));
        assert_eq!((agreement.directions, agreement.directions_agreed), (3, 3));
    }

    #[test]
    fn a_change_within_the_printed_deviations_of_both_rows_is_none() {
        let mut comparison =
            Comparison::new("t", "t", "m", vec![Quantity::relative("score", "score", "", 0)]);
        let noisy = |published, percent| {
            let pair = Pair::new(Some(published), Some(1.0), Origin::Simulated);
            vec![Pair { variation_percent: Some(percent), ..pair }]
        };
        let base = comparison.push_base("a", noisy(100.0, 3.0));
        comparison.push("within 5 %", base, noisy(104.9, 4.0));
        comparison.push("beyond", base, noisy(105.1, 4.0));
        let published = |row| comparison.change(row, 0).unwrap().published;
        assert_eq!((published(1), published(2)), (Direction::Same, Direction::Up));
    }

    #[test]
    fn what_is_missing_is_counted_and_not_compared() {
        let mut comparison = example();
        let absent = Pair::new(Some(1.0), None, Origin::Simulated);
        comparison.push("255", 0, vec![absent, absent]);
        let agreement = comparison.agreement();
        assert_eq!((agreement.directions, agreement.missing), (4, 2));
    }

    #[test]
    fn fitted_values_have_no_error() {
        let mut comparison = example();
        comparison.scale_to_base("score");
        let errors = comparison.errors(0);
        assert_eq!(errors.len(), 2);
        assert!((errors[0] - 70.0 / 1170.0).abs() < 1e-12, "{errors:?}");
    }
}
