//! Compares our directions with the forecast that nothing ever changes.

use std::iter::Sum;

use serde::Serialize;

use super::agreement::Change;
use super::{Comparison, Direction};

/// Numbers of directions, compared with a forecast without skill: the null model, which predicts that nothing
/// changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skill {
    /// Number of pairs whose direction from their base row was compared.
    pub directions: u64,
    /// Number of compared pairs whose direction in our values equals the published direction.
    pub directions_agreed: u64,
    /// Number of compared pairs without a published change. The null model is right for pairs without a
    /// published change.
    pub null_model: u64,
    /// Number of compared pairs with a published change.
    pub changes_published: u64,
    /// Number of published changes that our values show too, in the same direction.
    pub changes_met: u64,
    /// Number of changes in our values without a published change.
    pub changes_seen_only_here: u64,
    /// Number of published changes from a row to the next row with the same base row. The change from the
    /// base row to the first row after it is included.
    pub steps_published: u64,
    /// Number of published steps that our values show too, in the same direction.
    pub steps_met: u64,
}

/// The null model counts as beaten if the p-value is below this number.
const SIGNIFICANT: f64 = 0.05;

impl Skill {
    /// The p-value of a one-sided sign test against the null model. A pair counts only if either our
    /// direction or the null model is right, but not both. The p-value is the probability that a fair coin
    /// decides at least as many of the counted pairs in our favour. The p-value is 1 if no pair counts.
    #[must_use]
    pub fn p_value(&self) -> f64 {
        at_least(self.changes_met, self.changes_met + self.changes_seen_only_here)
    }

    /// Whether our values show at least a third of the published changes, and beat the null model. `None` if
    /// no change is published, so that nothing can be predicted.
    #[must_use]
    pub fn is_shown(&self) -> Option<bool> {
        let is_third = 3 * self.changes_met >= self.changes_published;
        (self.changes_published > 0).then(|| is_third && self.p_value() < SIGNIFICANT)
    }

    fn count_change(&mut self, change: Change) {
        self.directions += 1;
        self.directions_agreed += u64::from(change.agrees());
        if change.published == Direction::Same {
            self.null_model += 1;
            self.changes_seen_only_here += u64::from(!change.agrees());
        } else {
            self.changes_published += 1;
            self.changes_met += u64::from(change.agrees());
        }
    }

    fn count_step(&mut self, step: Change) {
        if step.published != Direction::Same {
            self.steps_published += 1;
            self.steps_met += u64::from(step.agrees());
        }
    }
}

impl Sum for Skill {
    fn sum<I: Iterator<Item = Self>>(skills: I) -> Self {
        skills.fold(Self::default(), |sum, more| Self {
            directions: sum.directions + more.directions,
            directions_agreed: sum.directions_agreed + more.directions_agreed,
            null_model: sum.null_model + more.null_model,
            changes_published: sum.changes_published + more.changes_published,
            changes_met: sum.changes_met + more.changes_met,
            changes_seen_only_here: sum.changes_seen_only_here + more.changes_seen_only_here,
            steps_published: sum.steps_published + more.steps_published,
            steps_met: sum.steps_met + more.steps_met,
        })
    }
}

impl Comparison {
    /// The skill of the whole table.
    #[must_use]
    pub fn skill(&self) -> Skill {
        (0..self.quantities.len()).map(|column| self.skill_of(column)).sum()
    }

    /// The skill of the quantity with this number.
    #[must_use]
    pub fn skill_of(&self, column: usize) -> Skill {
        let mut skill = Skill::default();
        for row in 0..self.rows.len() {
            self.change(row, column).into_iter().for_each(|change| skill.count_change(change));
            self.step(row, column).into_iter().for_each(|step| skill.count_step(step));
        }
        skill
    }
}

/// Probability that `coins` fair coins show at least `heads` heads.
fn at_least(heads: u64, coins: u64) -> f64 {
    // Compute with logarithms, because a thousand coins have more outcomes than a double can hold.
    let mut ways_ln = 0.0;
    let mut sum = 0.0;
    for shown in 0..=coins {
        if shown >= heads {
            sum += (ways_ln - coins as f64 * std::f64::consts::LN_2).exp();
        }
        ways_ln += ((coins - shown) as f64).ln() - ((shown + 1) as f64).ln();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::comparison::{Pair, Quantity};

    fn pair(published: f64, ours: f64) -> Vec<Pair> {
        vec![Pair::new(Some(published), Some(ours), Origin::Simulated)]
    }

    fn scores() -> Comparison {
        Comparison::new("t", "t", "m", vec![Quantity::relative("score", "score", "", 0)])
    }

    #[test]
    fn directions_stand_beside_those_of_nothing_ever_changes() {
        let mut comparison = scores();
        let base = comparison.push_base("base", pair(100.0, 1000.0));
        comparison.push("met", base, pair(110.0, 1200.0));
        comparison.push("missed", base, pair(120.0, 1000.0));
        comparison.push("opposite", base, pair(80.0, 1100.0));
        comparison.push("rightly the same", base, pair(101.0, 1010.0));
        comparison.push("only here", base, pair(100.0, 900.0));
        let skill = comparison.skill();
        assert_eq!((skill.directions, skill.directions_agreed), (5, 2));
        assert_eq!((skill.null_model, skill.changes_published), (2, 3));
        assert_eq!((skill.changes_met, skill.changes_seen_only_here), (1, 1));
        let agreement = comparison.agreement();
        assert_eq!((agreement.directions, agreement.directions_agreed), (5, 2));
        assert_eq!([skill, skill].into_iter().sum::<Skill>().directions, 10);
    }

    /// In this test, the three rows of the first base row are above this base row, as published. From the
    /// first to the third row, our values fall, and the published values do not fall.
    #[test]
    fn a_step_is_counted_from_the_row_before_and_never_from_another_base() {
        let mut comparison = scores();
        let base = comparison.push_base("base", pair(100.0, 100.0));
        comparison.push("up, up", base, pair(110.0, 130.0));
        comparison.push("up, down", base, pair(120.0, 120.0));
        comparison.push("same, down", base, pair(121.0, 110.0));
        let other = comparison.push_base("another machine", pair(500.0, 5.0));
        comparison.push("down, down", other, pair(400.0, 4.0));
        let skill = comparison.skill();
        assert_eq!((skill.changes_published, skill.changes_met), (4, 4));
        assert_eq!((skill.steps_published, skill.steps_met), (3, 2));
    }

    #[test]
    fn a_step_beside_a_missing_value_is_none() {
        let mut comparison = scores();
        let base = comparison.push_base("base", pair(100.0, 100.0));
        comparison.push("not printed", base, vec![Pair::new(None, Some(90.0), Origin::Simulated)]);
        comparison.push("down", base, pair(80.0, 80.0));
        assert_eq!(comparison.skill().steps_published, 0);
        assert_eq!(comparison.skill().changes_met, 1);
    }

    #[test]
    fn the_sign_test_is_that_of_the_textbook() {
        for (heads, coins, expected) in
            [(0, 0, 1.0), (0, 1, 1.0), (4, 4, 1.0 / 16.0), (5, 5, 1.0 / 32.0), (9, 10, 11.0 / 1024.0)]
        {
            assert!((at_least(heads, coins) - expected).abs() < 1e-12, "{heads} of {coins}");
        }
        assert!(at_least(420, 452) < 1e-80, "no overflow");
        assert!((at_least(500, 1000) - 0.512_612_5).abs() < 1e-6);
    }

    #[test]
    fn skill_needs_a_third_of_the_changes_and_a_beaten_null_model() {
        let skill = |changes_published, changes_met, changes_seen_only_here| {
            Skill { changes_published, changes_met, changes_seen_only_here, ..Skill::default() }.is_shown()
        };
        assert_eq!(skill(38, 0, 1), Some(false), "the other programs of phase two");
        assert_eq!(skill(30, 4, 0), Some(false), "the high-order study, as printed");
        assert_eq!(skill(521, 420, 32), Some(true));
        assert_eq!(skill(5, 5, 0), Some(true), "1 in 32");
        assert_eq!(skill(4, 4, 0), Some(false), "1 in 16");
        assert_eq!(skill(30, 9, 0), Some(false), "fewer than a third");
        assert_eq!(skill(10, 6, 5), Some(false), "as good as a coin");
        assert_eq!(skill(0, 0, 0), None);
    }
}
