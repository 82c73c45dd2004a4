//! How far off a forecast may be: an interval for each value, made from draws and two distances.
//!
//! It reaches over the draws of what page sets held. Both ends are moved outwards by a factor, for the ratio to the truth is
//! taken as log-normal with three parts: the distance of the recorded kernel's own row from that kernel, what forecasts of
//! this kind were found to be off by, and how far runs of one load differ. The last two are the constants here. They are
//! global; `pageset verify --against` on recordings of one load under several kernels and settings is how they were found,
//! and the book's page of pairs shows how they hold.

use serde::{Deserialize, Serialize};

/// Of a normal distribution, 80 % lie within so many standard deviations. How many true values lay in intervals so made is in
/// [`INTERVAL_COVERAGE`].
const QUANTILE: f64 = 1.28;

/// What an interval promises, and how often real runs were found inside. The book's pages `forecasts` and `guide/advise` have
/// the measurements.
pub const INTERVAL_COVERAGE: &str = "An interval is meant to hold 80 % of the true values. Measured, it held 81 % of the runs \
of loads whose repeats agree within 25 %, 75 % of those of other loads, and 61 % in trials of settings on one machine.";

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
            Self::Settings => 0.04,
            Self::Policy => 0.06,
        }
    }

    /// Of a value of one; that of `n` decisions is smaller by the root of `n`, as with any count.
    const fn spread_of_one(self) -> f64 {
        match self {
            Self::Recorded => 0.5,
            Self::Settings | Self::Policy => 0.3,
        }
    }

    /// How far the next run of the load differs, where `zone_share` of its pages come from the zone or go there.
    ///
    /// What page sets cannot hold is a difference of two large numbers, allocations and frees of a CPU. From run to run it
    /// differs by a part of those, however small it is itself: by [`LOAD_SPREAD`].
    fn spread_of_load(self, zone_share: f64) -> f64 {
        match self {
            // The same run.
            Self::Recorded => 0.0,
            Self::Settings | Self::Policy => (LOAD_SPREAD / zone_share).min(LOAD_SPREAD_MAX),
        }
    }
}

/// Part of a load's pages by which its pages past the page sets differ from run to run.
const LOAD_SPREAD: f64 = 0.03;
/// No repeats were found that differ by more, as a spread of logarithms.
const LOAD_SPREAD_MAX: f64 = 1.3;

/// From and to, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval(pub u64, pub u64);

impl Interval {
    /// Whether `value` lies in it.
    #[must_use]
    pub fn covers(self, value: u64) -> bool {
        (self.0..=self.1).contains(&value)
    }
}

/// What all values of a row have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis {
    pub(super) kind: Kind,
    /// Refills and drains that the values came of.
    pub(super) decisions: u64,
    /// Part of all pages allocated and freed that came from the zone or went there.
    pub(super) zone_share: f64,
}

impl Basis {
    /// The interval of `value`; `draws` are the same value in other draws.
    pub(super) fn interval(self, value: u64, draws: &[u64], own_distance: f64) -> Interval {
        // Draws of one recording differ less than recordings of one load: none is left out.
        let low = draws.iter().copied().fold(value, u64::min);
        let high = draws.iter().copied().fold(value, u64::max);
        let of_count = self.kind.spread_of_one().powi(2) / (self.decisions as f64 + 1.0);
        let of_load = self.kind.spread_of_load(self.zone_share);
        let of_kind = self.kind.spread();
        let spread = (own_distance.powi(2) + of_kind.powi(2) + of_load.powi(2) + of_count).sqrt();
        let factor = (QUANTILE * spread).exp();
        let (low, high) = ((low as f64 + 1.0) / factor - 1.0, (high as f64 + 1.0) * factor - 1.0);
        Interval(low.max(0.0).floor() as u64, high.ceil() as u64)
    }
}

/// How far two counts are apart, as a logarithm of their ratio; of zero and one, too.
pub(super) fn distance(a: u64, b: u64) -> f64 {
    ((a as f64 + 1.0) / (b as f64 + 1.0)).ln().abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, decisions: u64, zone_share: f64) -> Basis {
        Basis { kind, decisions, zone_share }
    }

    #[test]
    fn draws_and_distance_widen_an_interval() {
        let settings = of(Kind::Settings, 1000, 1.0);
        let narrow = settings.interval(1000, &[1000, 1000], 0.0);
        assert!(narrow.covers(1000) && narrow.0 > 800 && narrow.1 < 1250, "{narrow:?}");
        let drawn = settings.interval(1000, &[500, 2000], 0.0);
        let far = settings.interval(1000, &[1000, 1000], 0.7);
        assert!(drawn.0 < narrow.0 && far.1 > narrow.1);
        assert!(of(Kind::Recorded, 0, 0.0).interval(0, &[], 0.0).covers(0));
        assert!(of(Kind::Policy, 1, 1.0).interval(u64::MAX, &[0], 1e9).1 > 0, "no overflow");
    }

    #[test]
    fn the_less_reaches_the_zone_the_more_runs_differ() {
        let width = |kind, share| {
            let found = of(kind, 1000, share).interval(1000, &[], 0.0);
            found.1 - found.0
        };
        let shares = [1.0, 0.1, 0.01, 0.0];
        let widths = shares.map(|share| width(Kind::Settings, share));
        assert!(widths.is_sorted() && widths[0] < widths[2], "{widths:?}");
        assert_eq!(widths[2], widths[3], "repeats never differed by more");
        assert_eq!(width(Kind::Recorded, 1.0), width(Kind::Recorded, 0.0), "the run itself has no next one");
    }
}
