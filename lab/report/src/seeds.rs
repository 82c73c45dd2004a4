//! The seeds of a simulation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Consecutive seeds. A simulation is repeated with each seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seeds {
    /// The first seed.
    pub first: u64,
    /// Number of seeds. The sequence ends early at the largest 64-bit number.
    pub count: u64,
}

impl Seeds {
    /// Makes a sequence of one seed.
    #[must_use]
    pub const fn one(seed: u64) -> Self {
        Self { first: seed, count: 1 }
    }

    /// Iterates over the seeds.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        self.first..=self.last()
    }

    const fn last(self) -> u64 {
        self.first.saturating_add(self.count.saturating_sub(1))
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last() {
            last if last == self.first => write!(f, "{}", self.first),
            last => write!(f, "{} to {last}", self.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_follow_each_other_and_end_with_the_largest_number() {
        let seeds = Seeds { first: 3, count: 2 };
        assert!(seeds.iter().eq([3, 4]));
        assert_eq!((seeds.to_string(), Seeds::one(7).to_string()), ("3 to 4".to_owned(), "7".to_owned()));
        assert!(Seeds { first: u64::MAX, count: 5 }.iter().eq([u64::MAX]));
    }
}
