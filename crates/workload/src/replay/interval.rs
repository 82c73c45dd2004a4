//! How far off a forecast may be: an interval for each value, made from draws and two distances.
//!
//! It reaches over the draws of what page sets held. Both ends are moved outwards by a factor, for the ratio to the truth is
//! taken as log-normal with two parts: the distance of the recorded kernel's own row from that kernel, and what forecasts
//! of this kind were found to be off by. The last are the constants here. They are global; `pageset verify --against` on
//! recordings of one load under several kernels and settings is how they were found, and the book's page of pairs shows
//! how they hold.

use serde::Serialize;

/// An interval that covers the truth in four of five cases.
const QUANTILE: f64 = 1.28;

/// What forecasts were found to be off by, as a spread of logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The recorded kernel itself, which began where it was.
    Recorded,
    /// The recorded kernel with other settings.
    Settings,
    /// Another policy.
    Policy,
}

impl Kind {
    /// Of values in the thousands.
    const fn spread(self) -> f64 {
        match self {
            Self::Recorded => 0.02,
            Self::Settings => 0.06,
            Self::Policy => 0.08,
        }
    }

    /// Of a value of one; that of `n` decisions is smaller by the root of `n`, as with any count.
    const fn spread_of_one(self) -> f64 {
        match self {
            Self::Recorded => 0.5,
            Self::Settings | Self::Policy => 0.65,
        }
    }
}

/// From and to, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Interval(pub u64, pub u64);

impl Interval {
    /// Whether `value` lies in it.
    #[must_use]
    pub fn covers(self, value: u64) -> bool {
        (self.0..=self.1).contains(&value)
    }
}

/// The interval of `value`, which came of `decisions` refills and drains; `draws` are the same value in other draws.
pub(super) fn interval(kind: Kind, value: u64, decisions: u64, draws: &[u64], own_distance: f64) -> Interval {
    // Draws of one recording differ less than recordings of one load: none is left out.
    let low = draws.iter().copied().fold(value, u64::min);
    let high = draws.iter().copied().fold(value, u64::max);
    let of_count = kind.spread_of_one().powi(2) / (decisions as f64 + 1.0);
    let spread = (own_distance.powi(2) + kind.spread().powi(2) + of_count).sqrt();
    let factor = (QUANTILE * spread).exp();
    let (low, high) = ((low as f64 + 1.0) / factor - 1.0, (high as f64 + 1.0) * factor - 1.0);
    Interval(low.max(0.0).floor() as u64, high.ceil() as u64)
}

/// How far two counts are apart, as a logarithm of their ratio; of zero and one, too.
pub(super) fn distance(a: u64, b: u64) -> f64 {
    ((a as f64 + 1.0) / (b as f64 + 1.0)).ln().abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_and_distance_widen_an_interval() {
        let narrow = interval(Kind::Settings, 1000, 1000, &[1000, 1000], 0.0);
        assert!(narrow.covers(1000) && narrow.0 > 800 && narrow.1 < 1250, "{narrow:?}");
        let drawn = interval(Kind::Settings, 1000, 1000, &[500, 2000], 0.0);
        let far = interval(Kind::Settings, 1000, 1000, &[1000, 1000], 0.7);
        assert!(drawn.0 < narrow.0 && far.1 > narrow.1);
        assert!(interval(Kind::Recorded, 0, 0, &[], 0.0).covers(0));
        assert!(interval(Kind::Policy, u64::MAX, 1, &[0], 1e9).1 > 0, "no overflow");
    }
}
