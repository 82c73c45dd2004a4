//! Compares the run times of a command before and after a change of a setting. Decides whether chance alone
//! explains the difference.

use serde::Serialize;

/// A change is claimed only if chance alone would separate the two groups of runs with at most this
/// probability.
const CHANCE_MAX: f64 = 0.05;

/// The times in seconds that the recorded runs of a command took.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunTimes {
    /// Times before the setting was changed.
    pub before_s: Vec<f64>,
    /// Times with the new value of the setting.
    pub after_s: Vec<f64>,
}

/// The effect of a setting on run times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Difference {
    /// Each of the two groups has one run, or a group has no run. The times then do not show how much runs
    /// differ.
    OneRun,
    /// All runs with the setting were faster than all runs before, or all were slower. But with so few runs,
    /// chance alone often separates two groups of runs.
    TooFew,
    /// The times before the change overlap with the times with the setting.
    WithinNoise,
    /// The two groups of runs do not overlap, and chance alone seldom separates groups like these.
    Shown {
        /// The change in percent. The change is below 0 if the setting saves time.
        percent: f64,
        /// If the setting has no effect, chance separates the two groups once in this number of comparisons.
        one_in: u64,
    },
}

impl RunTimes {
    /// Finds the effect of the setting on the run times. If the setting changes nothing, all orders of the
    /// runs by time are equally likely, where runs of one group count as alike. In only two of these orders,
    /// the two groups do not overlap.
    #[must_use]
    pub fn difference(&self) -> Difference {
        let (Some(before), Some(after)) = (Range::of(&self.before_s), Range::of(&self.after_s)) else {
            return Difference::OneRun;
        };
        let (runs, of_them) = (self.before_s.len() + self.after_s.len(), self.after_s.len());
        if runs <= 2 {
            return Difference::OneRun;
        }
        if before.low <= after.high && after.low <= before.high {
            return Difference::WithinNoise;
        }
        let orders = (1..=of_them).fold(1.0, |orders, n| orders * (runs - of_them + n) as f64 / n as f64);
        if 2.0 / orders > CHANCE_MAX {
            return Difference::TooFew;
        }
        Difference::Shown {
            percent: 100.0 * (after.median / before.median - 1.0),
            one_in: (orders / 2.0).round() as u64,
        }
    }

    /// Returns a sentence with the times of `command` before the change and with `setting`. `None` if the
    /// command did not run both before and with the setting.
    #[must_use]
    pub fn sentence(&self, command: &str, setting: &str) -> Option<String> {
        let (before, after) = (Range::of(&self.before_s)?, Range::of(&self.after_s)?);
        let took = format!("`{command}` took {before} before, and {after} with {setting}");
        Some(match self.difference() {
            Difference::OneRun => format!(
                "{took}. One run each does not show how much runs differ: --times {} does.",
                Self::enough()
            ),
            Difference::TooFew => format!(
                "{took}: no change beyond noise, because chance often separates so few runs too. --times {} is enough.",
                Self::enough()
            ),
            Difference::WithinNoise => format!("{took}: no change beyond noise."),
            Difference::Shown { percent, one_in } => {
                let (size, direction) = (percent.abs(), if percent < 0.0 { "less" } else { "more" });
                format!(
                    "{took}: {size:.1} % {direction}. By chance alone, runs are separated like this once in {one_in} times."
                )
            }
        })
    }

    /// The smallest number of runs in each group that can show a change.
    fn enough() -> usize {
        let apart = |runs: usize| Self { before_s: vec![1.0; runs], after_s: vec![2.0; runs] };
        (1..).find(|runs| matches!(apart(*runs).difference(), Difference::Shown { .. })).unwrap_or(1)
    }
}

/// The median of several run times, and their range.
struct Range {
    median: f64,
    low: f64,
    high: f64,
    runs: usize,
}

impl Range {
    fn of(times: &[f64]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let (half, runs) = (sorted.len() / 2, sorted.len());
        let median = if runs % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) };
        Some(Self { median, low, high, runs })
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { median, low, high, runs } = self;
        // A recording ends up to 10 ms after its command, so print times in units of 10 ms or more.
        let digits = if *high < 10.0 { 2 } else { 1 };
        write!(f, "{median:.digits$} s")?;
        if *runs > 1 {
            write!(f, " ({low:.digits$} to {high:.digits$})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(before: &[f64], after: &[f64]) -> RunTimes {
        RunTimes { before_s: before.to_vec(), after_s: after.to_vec() }
    }

    #[test]
    fn a_change_is_claimed_only_if_noise_does_not_explain_it() {
        let four = [9.5, 9.6, 9.4, 9.9];
        assert_eq!(times(&[9.6], &[4.0]).difference(), Difference::OneRun);
        assert_eq!(times(&four[..3], &[4.0, 4.1, 4.2]).difference(), Difference::TooFew);
        assert_eq!(times(&four, &[9.45, 4.1, 4.2, 4.3]).difference(), Difference::WithinNoise);
        let Difference::Shown { percent, one_in } = times(&four, &[4.0, 4.1, 4.2, 4.3]).difference() else {
            panic!("eight runs in two groups apart")
        };
        assert!((percent + 56.5).abs() < 0.1 && one_in == 35, "{percent} {one_in}");
    }

    #[test]
    fn run_times_are_a_sentence() {
        let said =
            |before: &[f64], after: &[f64]| times(before, after).sentence("make -j4", "vm.a=8").unwrap();
        assert_eq!(
            said(&[9.6], &[9.5]),
            "`make -j4` took 9.60 s before, and 9.50 s with vm.a=8. One run each does not show how much runs differ: \
             --times 4 does."
        );
        assert_eq!(
            said(&[9.6, 9.4, 9.9], &[9.5, 9.3, 9.8]),
            "`make -j4` took 9.60 s (9.40 to 9.90) before, and 9.50 s (9.30 to 9.80) with vm.a=8: no change beyond \
             noise."
        );
        let shorter = said(&[12.0, 12.1, 12.2, 12.4], &[11.0, 11.1, 11.2, 11.4]);
        assert!(
            shorter
                .ends_with(": 8.2 % less. By chance alone, runs are separated like this once in 35 times."),
            "{shorter}"
        );
        assert_eq!(times(&[1.0], &[]).sentence("x", "y"), None);
    }
}
