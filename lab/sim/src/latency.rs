//! A histogram of the durations of operations, with logarithmic buckets.

/// The position of a value's highest bit and the next `BITS` bits choose the value's bucket. So the width of
/// a bucket is at most 1/32 of each value in it.
const BITS: u32 = 5;
/// Number of buckets that cover every 64-bit number of picoseconds.
const BUCKETS: usize = (64 - BITS as usize + 1) << BITS;

/// A histogram of times. A percentile from this histogram is at most 1/32 (3 %) larger than the exact
/// percentile of the recorded times.
#[derive(Clone, PartialEq, Eq)]
pub struct Latency {
    buckets: Box<[u64]>,
    count: u64,
    total_ps: u64,
    max_ps: u64,
}

impl Default for Latency {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS].into(), count: 0, total_ps: 0, max_ps: 0 }
    }
}

fn bucket(ps: u64) -> usize {
    if ps < 1 << BITS {
        return ps as usize;
    }
    let shift = ps.ilog2() - BITS;
    ((shift as usize + 1) << BITS) + (ps >> shift) as usize - (1 << BITS)
}

/// The largest value that falls into a bucket.
fn upper(bucket: usize) -> u64 {
    let (group, within) = (bucket >> BITS, (bucket & ((1 << BITS) - 1)) as u64);
    match group {
        0 => within,
        group => (((within + (1 << BITS) + 1) as u128) << (group - 1)).saturating_sub(1).min(u64::MAX.into())
            as u64,
    }
}

impl Latency {
    #[inline]
    pub(crate) fn record(&mut self, ps: u64) {
        self.buckets[bucket(ps)] += 1;
        self.count += 1;
        self.total_ps = self.total_ps.saturating_add(ps);
        self.max_ps = self.max_ps.max(ps);
    }

    /// Number of recorded times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all recorded times, in nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.total_ps / 1000
    }

    /// Average of all recorded times, in nanoseconds; 0 if no time was recorded.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total_ps as f64 / 1000.0 / self.count as f64 }
    }

    /// The longest recorded time, in nanoseconds.
    #[must_use]
    pub fn max_ns(&self) -> f64 {
        self.max_ps as f64 / 1000.0
    }

    /// Returns the percentile for `share` (0 to 1) in nanoseconds: the fraction `share` of the recorded times
    /// is at most as long as the result. Returns 0 if no time was recorded.
    #[must_use]
    pub fn percentile_ns(&self, share: f64) -> f64 {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper(index).min(self.max_ps) as f64 / 1000.0;
            }
        }
        0.0
    }
}

impl std::fmt::Debug for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Latency")
            .field("count", &self.count)
            .field("p50_ns", &self.percentile_ns(0.5))
            .field("p99_ns", &self.percentile_ns(0.99))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_the_bucket_whose_bounds_hold_it() {
        for value in (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + (1 << bit) / 3]) {
            let index = bucket(value);
            assert!(value <= upper(index), "{value}");
            assert!(index == 0 || value > upper(index - 1), "{value}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(upper(BUCKETS - 1), u64::MAX);
    }

    #[test]
    fn percentiles_are_within_a_bucket() {
        let mut latency = Latency::default();
        (1..=1000).for_each(|ns| latency.record(ns * 1000));
        for (share, exact) in [(0.5, 500.0), (0.99, 990.0), (0.999, 999.0), (1.0, 1000.0)] {
            let found = latency.percentile_ns(share);
            assert!((found - exact).abs() / exact <= 0.032, "{share}: {found}");
        }
        assert_eq!(Latency::default().percentile_ns(0.5), 0.0);
    }
}
