//! Random variation of the time that a lock's line, or a line of an allocator without locks, takes to move
//! between CPUs.
//!
//! On a real machine, the time to move a line depends for example on other traffic, on the slice of the cache
//! that has the line, and on the order of requests. If all moves took equal times, CPUs would come to a lock
//! at regular intervals. With equal times, no CPU would wait, even for a lock that CPUs hold 90 % of the
//! time. So on machines with `lines_vary`, each move takes a random time from an exponential distribution.
//! The mean of the distribution is the line's cost.

use std::cell::Cell;

use crate::random::mix;

/// Number of fractional bits of a factor of random variation.
const FACTOR_BITS: u32 = 12;
/// Number of random factors. For each move, the model chooses one factor. All factors are equally probable.
const FACTORS: usize = 256;

/// A source of random factors whose mean is 1.
#[derive(Debug)]
pub(crate) struct Variation {
    state: Cell<u64>,
    /// The random factors. Without factors, all moves take their mean time.
    factors: Box<[u32]>,
}

impl Variation {
    /// Makes factors of an exponential distribution. If `varies` is false, there are no factors, and all
    /// moves take their mean time.
    pub(crate) fn new(varies: bool, seed: u64) -> Self {
        let part = |index: usize| -(1.0 - (index as f64 + 0.5) / FACTORS as f64).ln();
        // Before scaling, the mean of the factors is slightly below 1, because each factor is the median of
        // one of 256 equally likely parts of the distribution.
        let mean = (0..FACTORS).map(part).sum::<f64>() / FACTORS as f64;
        let factor = |index| (part(index) / mean * f64::from(1_u32 << FACTOR_BITS)).round() as u32;
        let factors = if varies { (0..FACTORS).map(factor).collect() } else { Box::default() };
        Self { state: Cell::new(mix(seed)), factors }
    }

    /// Returns a random time for one move that takes `mean` on average.
    #[inline]
    pub(crate) fn of(&self, mean: u64) -> u64 {
        if mean == 0 || self.factors.is_empty() {
            return mean;
        }
        let drawn = mix(self.state.get());
        self.state.set(drawn);
        mean.saturating_mul(self.factors[(drawn >> 56) as usize].into()) >> FACTOR_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_stays_and_the_spread_is_as_large() {
        let variation = Variation::new(true, 1);
        let moves: Vec<_> = (0..100_000).map(|_| variation.of(1_000_000) as f64 / 1e6).collect();
        let mean = moves.iter().sum::<f64>() / 1e5;
        let variance = moves.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.02, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.1, "variance {variance}");
    }

    #[test]
    fn a_machine_whose_lines_do_not_vary_has_one_time_for_all() {
        assert!((0..100).all(|_| Variation::new(false, 1).of(70) == 70));
        assert_eq!(Variation::new(true, 1).of(0), 0);
    }
}
