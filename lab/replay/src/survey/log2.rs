//! Counts of values by their number of bits.

use pageset_report::Histogram;
use serde::{Serialize, Serializer};

/// Number of buckets: one for 0 and one for each bit length.
const BUCKETS: usize = 65;

/// How many values of each bit length occurred, with the sum and the largest value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log2Counts {
    /// Bucket 0 counts the value 0, and bucket n counts values of n bits.
    counts: [u64; BUCKETS],
    /// Sum of all values. If the sum is too large for a `u64`, the field is the largest `u64`.
    pub sum: u64,
    /// Largest value; 0 without values.
    pub max: u64,
}

impl Default for Log2Counts {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], sum: 0, max: 0 }
    }
}

impl Log2Counts {
    #[inline]
    pub(super) fn record(&mut self, value: u64) {
        self.counts[(u64::BITS - value.leading_zeros()) as usize] += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// Number of values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Mean value; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.sum as f64 / total as f64)
    }

    /// Returns the ranges that contain values. Each range is given by its smallest possible value and its
    /// number of values.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let used = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        used.map(|(bits, count)| (if bits == 0 { 0 } else { 1 << (bits - 1) }, *count))
    }

    /// Returns the ranges of values, in the form that a printed histogram needs.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        self.ranges().for_each(|(from, count)| histogram.record_many(from, count));
        histogram
    }

    /// An upper bound for a percentile: the end of the range that contains the percentile. The true
    /// percentile is at least half as large as this bound. `None` without values.
    #[must_use]
    pub fn percentile_at_most(&self, percent: u64) -> Option<u64> {
        let wanted = (u128::from(self.total()) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        for (bits, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= wanted {
                let range_end = if bits == 0 { 0 } else { u64::MAX >> (BUCKETS - 1 - bits) };
                return Some(range_end.min(self.max));
            }
        }
        None
    }
}

/// The JSON form of a distribution. Each percentile is written as the end of the range that contains the
/// percentile.
#[derive(Serialize)]
struct Distribution {
    count: u64,
    sum: u64,
    mean: Option<f64>,
    p50_at_most: Option<u64>,
    p90_at_most: Option<u64>,
    p99_at_most: Option<u64>,
    max: u64,
    ranges: Histogram,
}

impl Serialize for Log2Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let distribution = Distribution {
            count: self.total(),
            sum: self.sum,
            mean: self.mean(),
            p50_at_most: self.percentile_at_most(50),
            p90_at_most: self.percentile_at_most(90),
            p99_at_most: self.percentile_at_most(99),
            max: self.max,
            ranges: self.histogram(),
        };
        distribution.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_range_of_their_bit_length() {
        let mut counts = Log2Counts::default();
        for value in [0, 1, 2, 3, 4, u64::MAX] {
            counts.record(value);
        }
        let ranges: Vec<_> = counts.ranges().collect();
        assert_eq!(ranges, [(0, 1), (1, 1), (2, 2), (4, 1), (1 << 63, 1)]);
        assert_eq!((counts.total(), counts.sum, counts.max), (6, u64::MAX, u64::MAX));
    }

    #[test]
    fn percentiles_are_ends_of_ranges() {
        let mut counts = Log2Counts::default();
        assert_eq!(counts.percentile_at_most(50), None);
        for value in [1, 5, 5, 900] {
            counts.record(value);
        }
        assert_eq!(counts.percentile_at_most(25), Some(1));
        assert_eq!(counts.percentile_at_most(50), Some(7));
        assert_eq!(counts.percentile_at_most(100), Some(900));
    }
}
