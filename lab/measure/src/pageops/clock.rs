//! Measures the times of single operations, down to tens of nanoseconds.

use std::hint::black_box;
use std::time::Instant;

/// A clock that knows the cost of its own readings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    cost_ns: f64,
}

impl Clock {
    /// Measures the cost of a reading: the median of many readings in a row.
    pub(crate) fn new() -> Self {
        let mut costs: Vec<_> = (0..1001).map(|_| Instant::now().elapsed().as_nanos()).collect();
        costs.sort_unstable();
        Self { cost_ns: costs[costs.len() / 2] as f64 }
    }

    /// Nanoseconds between two readings, minus the cost of one reading.
    pub(crate) fn between_ns(self, start: Instant, end: Instant) -> f64 {
        (end.duration_since(start).as_nanos() as f64 - self.cost_ns).max(0.0)
    }
}

/// Reads all bytes, as a program does after it has asked for a page.
#[inline(never)]
pub(crate) fn touch(bytes: &[u8]) -> u64 {
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
    black_box(words.fold(0, u64::wrapping_add))
}

/// The median, or 0 if there are no values.
pub fn median(values: &[f64]) -> f64 {
    pageset_report::Spread::of(values).map_or(0.0, |spread| spread.median)
}

/// The value below which `tenths` tenths of the values lie. The values may be in any order. The function
/// returns 0 if there are no values.
pub(super) fn tenth(values: &[f64], tenths: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * tenths / 10).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touch_reads_everything() {
        let mut bytes = vec![0; 64];
        bytes[63] = 1;
        bytes[0] = 3;
        assert_eq!(touch(&bytes), u64::from_ne_bytes([3, 0, 0, 0, 0, 0, 0, 1]));
    }

    #[test]
    fn tenths_are_those_of_sorted_values() {
        let values = [9.0, 0.0, 8.0, 1.0, 7.0, 2.0, 6.0, 3.0, 5.0, 4.0];
        assert_eq!((tenth(&values, 1), tenth(&values, 9)), (1.0, 9.0));
        assert_eq!((tenth(&[], 1), tenth(&[2.0], 9)), (0.0, 2.0));
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }
}
