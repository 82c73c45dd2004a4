//! Values side by side, with their ranges: small multiples and distributions. The pictures need no script.

use serde::Serialize;

/// Values side by side, as bars that begin at 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bars {
    /// The meaning of the values.
    pub title: String,
    /// The unit of the values.
    pub unit: String,
    /// The bars from top to bottom.
    pub bars: Vec<Bar>,
}

/// A value with its name and its range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// The name of the bar.
    pub name: String,
    /// The value.
    pub value: u64,
    /// The range of possible values. `None` if the range is not known.
    pub range: Option<(u64, u64)>,
}

impl Bars {
    /// The value at the right end of the picture: the longest bar or range, but at most twice the longest
    /// bar. A longer range is cut at the right end, and its end is drawn as open.
    pub(super) fn scale(&self) -> u64 {
        let longest = self.bars.iter().map(|bar| bar.value).max().unwrap_or(0).max(1);
        let reach = self.bars.iter().filter_map(|bar| bar.range).map(|range| range.1).max().unwrap_or(0);
        reach.clamp(longest, longest.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_does_not_make_all_bars_short() {
        let bar = |value, high| Bar { name: String::new(), value, range: Some((0, high)) };
        let bars = |bars| Bars { title: String::new(), unit: String::new(), bars };
        assert_eq!(bars(vec![bar(10, 12), bar(5, 9)]).scale(), 12);
        assert_eq!(bars(vec![bar(10, 12), bar(5, 900)]).scale(), 20);
        assert_eq!(bars(vec![]).scale(), 1);
    }
}
