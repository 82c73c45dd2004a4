//! Random numbers. Each seed has its own stream.

use rand::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::from_seed(seed.wrapping_mul(0xd134_2543_de82_ef95).to_le_bytes()))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number from 0 up to but not including `end`. Returns 0 if `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((self.next() as u128 * end as u128) >> 64) as u64
    }

    /// Returns true with a probability of `permille` / 1000.
    pub(super) fn permille(&mut self, permille: u32) -> bool {
        self.below(1000) < permille as u64
    }

    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number from `least` to `most`. The logarithm of the number is evenly distributed, so small
    /// numbers are frequent.
    pub(super) fn log_uniform(&mut self, least: u64, most: u64) -> u64 {
        let (least, most) = (least.max(1) as f64, most.max(1) as f64);
        (least * (most / least).powf(self.part())).round() as u64
    }

    /// Returns an exponentially distributed number with the mean `mean`.
    pub(super) fn exponential(&mut self, mean: u64) -> u64 {
        (-(1.0 - self.part()).ln() * mean as f64).round() as u64
    }

    /// Returns one of the two whole numbers next to `mean`, so that the average of many results is `mean`.
    pub(super) fn rounded(&mut self, mean: f64) -> u64 {
        mean as u64 + u64::from(self.part() < mean.fract())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_within_their_bounds_and_repeat_with_the_seed() {
        let (mut one, mut same, mut other) = (Random::new(1), Random::new(1), Random::new(2));
        for _ in 0..1000 {
            let number = one.log_uniform(10, 1000);
            assert!((10..=1000).contains(&number));
            assert_eq!(number, same.log_uniform(10, 1000));
            assert!(other.below(7) < 7 && other.below(0) == 0);
        }
        let mean = (0..10_000).map(|_| one.exponential(100)).sum::<u64>() / 10_000;
        assert!((90..110).contains(&mean), "{mean}");
    }
}
