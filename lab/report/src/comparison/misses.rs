//! Counts how published directions and ours differ.

use std::iter::Sum;

use serde::Serialize;

use super::{Comparison, Direction};

/// Numbers of directions that do not agree, by the kind of difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Misses {
    /// A change is published, but our value does not change.
    pub only_published: u64,
    /// Our value changes, but no change is published.
    pub only_ours: u64,
    /// The published value rises and our value falls, or the published value falls and our value rises.
    pub opposite: u64,
    /// Number of misses, of any kind, whose published change and our change differ by at most the band. The
    /// band is the largest change that counts as no change.
    pub close: u64,
}

impl Misses {
    /// Number of all misses.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.only_published + self.only_ours + self.opposite
    }
}

impl Sum for Misses {
    fn sum<I: Iterator<Item = Self>>(misses: I) -> Self {
        misses.fold(Self::default(), |sum, more| Self {
            only_published: sum.only_published + more.only_published,
            only_ours: sum.only_ours + more.only_ours,
            opposite: sum.opposite + more.opposite,
            close: sum.close + more.close,
        })
    }
}

impl Comparison {
    /// The misses of the whole table.
    #[must_use]
    pub fn misses(&self) -> Misses {
        let cells =
            (0..self.rows.len()).flat_map(|row| (0..self.quantities.len()).map(move |column| (row, column)));
        cells.filter_map(|(row, column)| self.miss(row, column)).sum()
    }

    /// The miss of one direction. `None` if the direction agrees or cannot be compared.
    fn miss(&self, row: usize, column: usize) -> Option<Misses> {
        let change = self.change(row, column).filter(|change| !change.agrees())?;
        let pair = &self.rows[row].pairs[column];
        let base = &self.rows[self.rows[row].base?].pairs[column];
        let published = change.band.size(base.published?, pair.published?);
        let ours = change.band.size(base.ours?, pair.ours?);
        let is_close = (published - ours).abs() <= change.band.width();
        let mut misses = Misses { close: u64::from(is_close), ..Misses::default() };
        *match (change.published, change.ours) {
            (Direction::Same, _) => &mut misses.only_ours,
            (_, Direction::Same) => &mut misses.only_published,
            _ => &mut misses.opposite,
        } = 1;
        Some(misses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use crate::comparison::{Pair, Quantity};

    #[test]
    fn each_miss_is_of_one_kind() {
        let mut comparison =
            Comparison::new("t", "t", "m", vec![Quantity::relative("score", "score", "", 0)]);
        let pair = |published, ours| vec![Pair::new(Some(published), Some(ours), Origin::Simulated)];
        let base = comparison.push_base("base", pair(100.0, 1000.0));
        comparison.push("agrees", base, pair(110.0, 1200.0));
        comparison.push("only published, and close", base, pair(103.0, 1015.0));
        comparison.push("only published", base, pair(120.0, 1000.0));
        comparison.push("only ours", base, pair(100.0, 900.0));
        comparison.push("opposite", base, pair(110.0, 900.0));
        let misses = comparison.misses();
        assert_eq!(misses, Misses { only_published: 2, only_ours: 1, opposite: 1, close: 1 });
        let agreement = comparison.agreement();
        assert_eq!(misses.total(), agreement.directions - agreement.directions_agreed);
        assert_eq!([misses, misses].into_iter().sum::<Misses>().total(), 8);
    }
}
