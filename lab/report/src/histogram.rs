//! Distributions of values over powers of two, as pictures of characters.

use std::fmt;

use serde::Serialize;

use crate::{Cell, Column, Row, Table};

/// Number of buckets: one for 0 and one for each bit length.
const BUCKETS: usize = 65;
/// Longest bar in characters.
const BAR_WIDTH: u64 = 40;

/// Counts of values in the ranges 0, 1, 2 to 3, 4 to 7, and so on.
///
/// The `Display` form of a histogram resembles the form of tracing tools. There is a line with a bar for each
/// range, from the first nonempty range to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Bucket 0 counts zeros. Bucket n counts values of n bits.
    counts: [u64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS] }
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts one value `times` times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        let bucket = (u64::BITS - value.leading_zeros()) as usize;
        self.counts[bucket] = self.counts[bucket].saturating_add(times);
    }

    /// Number of values that were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the first value, the last value and the count of each range, from the first nonempty range to
    /// the last.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let used = |count: &u64| *count > 0;
        let first = self.counts.iter().position(used).unwrap_or(BUCKETS);
        let end = self.counts.iter().rposition(used).map_or(BUCKETS, |last| last + 1);
        (first..end).map(|bucket| {
            let (low, high) = limits(bucket);
            (low, high, self.counts[bucket])
        })
    }

    /// Returns the ranges as rows of a table, for machine formats.
    #[must_use]
    pub fn to_table(&self, title: &str) -> Table {
        let columns =
            vec![Column::count("from", "from"), Column::count("to", "to"), Column::count("count", "number")];
        let mut table = Table::new(title, columns);
        for (low, high, count) in self.ranges() {
            table.push(Row::new([low, high, count].map(Cell::Count)));
        }
        table
    }
}

/// First and last value of a bucket.
fn limits(bucket: usize) -> (u64, u64) {
    match bucket {
        0 => (0, 0),
        _ => (1 << (bucket - 1), u64::MAX >> (BUCKETS - 1 - bucket)),
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = self.counts.iter().copied().max().unwrap_or(0);
        if largest == 0 {
            return writeln!(f, "(no values)");
        }
        let lines: Vec<_> = self.ranges().map(|(low, high, count)| (range_text(low, high), count)).collect();
        let range_width = lines.iter().map(|(range, _)| range.len()).max().unwrap_or(0);
        let count_width = largest.to_string().len();
        // A line has the range, the count and the bar, and 5 characters between and around them. If the range
        // and the count have many digits, the bar gets fewer characters.
        let bar_width = BAR_WIDTH.min((75usize.saturating_sub(range_width + count_width)) as u64);
        for (range, count) in lines {
            let bar = (u128::from(count) * u128::from(bar_width)).div_ceil(u128::from(largest)) as usize;
            let bar = "#".repeat(bar);
            writeln!(f, "{range:<range_width$}  {count:>count_width$} |{bar:<0$}|", bar_width as usize)?;
        }
        Ok(())
    }
}

fn range_text(low: u64, high: u64) -> String {
    if low == high { low.to_string() } else { format!("{low}..{high}") }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.ranges().map(|(from, to, count)| Range { from, to, count }))
    }
}

/// One range in JSON.
#[derive(Serialize)]
struct Range {
    from: u64,
    to: u64,
    count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_inside_its_range() {
        let values = (0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1, (1u64 << bit) + 1]);
        for value in values.chain([u64::MAX]) {
            let mut histogram = Histogram::new();
            histogram.record(value);
            let ranges: Vec<_> = histogram.ranges().collect();
            assert_eq!(ranges.len(), 1, "{value}");
            assert!(ranges[0].0 <= value && value <= ranges[0].1, "{value} in {ranges:?}");
        }
    }

    #[test]
    fn it_is_drawn_from_the_first_used_range_to_the_last() {
        let mut histogram = Histogram::new();
        histogram.record_many(63, 80);
        histogram.record_many(126, 1);
        histogram.record_many(504, 40);
        let expected = "\
32..63    80 |########################################|
64..127    1 |#                                       |
128..255   0 |                                        |
256..511  40 |####################                    |
";
        assert_eq!(histogram.to_string(), expected);
        assert_eq!(histogram.total(), 121);
    }

    #[test]
    fn an_empty_one_says_so() {
        assert_eq!(Histogram::new().to_string(), "(no values)\n");
        assert_eq!(Histogram::new().ranges().count(), 0);
    }

    #[test]
    fn lines_stay_within_80_columns() {
        let mut histogram = Histogram::new();
        histogram.record_many(0, 1);
        histogram.record_many(u64::MAX, u64::MAX);
        assert!(histogram.to_string().lines().all(|line| line.len() <= 80));
    }
}
