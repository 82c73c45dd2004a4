//! Options of `pageset top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use pageset_report::Format;

use crate::choice::one_of;
use crate::options::TargetArgs;
use crate::units::time;

/// Shortest and longest interval, in seconds.
const INTERVAL_S: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

const READING: &str = "\
How to read this:
  free, above low   free pages of a zone, and how many of them are above the low
                    watermark; when fewer pages than the low watermark are
                    free, the kernel wakes the reclaimer
  PCP pages         pages in the zone's page sets, which other CPUs cannot use
  free change       pages that came back to the zone minus pages that left it,
                    in a second. /proc does not count the two separately; JSON
                    has bounds for both
  count, change     pages in a CPU's page set, and their change since the last
                    reading
  high              the page set's limit, which the kernel moves between
                    high_min and high_max; batch is how many pages move at a
                    time
  unchanged         for how long every reading has shown this count

  With privileges, pageset also counts tracepoints, without recording them. It
  shows the exact numbers of blocks refilled and drained on each CPU, and of
  waits for any spin lock. As root, pageset shows waits for zone locks by
  caller, and as a part of the time of all CPUs. If `pageset bench machine` has
  measured the cost of a visit, --once also prints a verdict: whether page sets
  may take so much CPU time that a change is worth it.

Examples:
  pageset top                            until it is interrupted
  pageset top --once --format json | jq .totals.pcp_pages
  sudo pageset top --once --interval 10s
  sudo pageset top --once -f openmetrics --force -o pageset.prom
                                         metrics of a minute, for collectors";

/// Show what the page sets of this machine do, once a second
///
/// Reads /proc/zoneinfo and /proc/vmstat, which needs no privileges. Shows page sets by zone and CPU, pages
/// that move between page sets and zones, and how far zones are above their watermarks.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING)]
pub(crate) struct TopArgs {
    /// Time between two readings: 500ms, 1s, 2m. For openmetrics the default is a minute, because a second
    /// says little about a machine
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    #[arg(default_value_if("format", "openmetrics", "1m"))]
    pub(crate) interval: Duration,
    /// Print one interval, and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Read the files of this directory instead of those of /proc
    #[arg(long, value_name = "DIR", default_value = "/proc", hide = true, value_hint = ValueHint::DirPath)]
    pub(crate) proc: PathBuf,
    /// How to write the interval: `table` is for people, 80 columns of plain ASCII; other formats have
    /// all digits
    #[arg(short, long, default_value = "table", help_heading = "Output", value_name = "FORMAT")]
    #[arg(value_parser = one_of(TopFormat::named()))]
    pub(crate) format: TopFormat,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// The format of one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopFormat {
    /// A format that other subcommands have, too.
    Printed(Format),
    /// The format OpenMetrics, for programs that collect metrics.
    OpenMetrics,
}

impl TopFormat {
    fn named() -> impl Iterator<Item = (&'static str, Self)> {
        let printed = Format::ALL.map(|format| (format.name(), Self::Printed(format)));
        printed.into_iter().chain([("openmetrics", Self::OpenMetrics)])
    }
}

impl TopArgs {
    /// Returns an error text if `--format` or `--output` is given without `--once`.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let is_written = self.format != TopFormat::Printed(Format::Table) || self.target.output.is_some();
        (is_written && !self.once).then_some("--format and --output are for a single interval: add --once")
    }
}

/// Parses an interval within `INTERVAL_S`. An interval below 0.1 s leaves no time for reading. In an interval
/// above an hour, the table on the screen would be old.
fn interval(typed: &str) -> Result<Duration, String> {
    let interval = time(typed)?;
    if !INTERVAL_S.contains(&interval.as_secs_f64()) {
        return Err("is out of range: from 100ms to 60m".to_owned());
    }
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_those_of_a_minute() {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            top: TopArgs,
        }
        let seconds = |typed: &str| {
            let typed = typed.split(' ').filter(|word| !word.is_empty());
            let command = <Command as clap::Parser>::parse_from(std::iter::once("top").chain(typed));
            command.top.interval.as_secs()
        };
        assert_eq!((seconds(""), seconds("--once -f json")), (1, 1));
        assert_eq!(seconds("--once -f openmetrics"), 60);
        assert_eq!(seconds("--once -f openmetrics -i 5s"), 5);
    }

    #[test]
    fn intervals_have_a_unit_and_a_range() {
        for (typed, ms) in [("100ms", 100), ("1s", 1000), ("1.5s", 1500), ("60m", 3_600_000)] {
            assert_eq!(interval(typed), Ok(Duration::from_millis(ms)), "{typed}");
        }
        for typed in ["", "1", "s", "99ms", "61m", "-1s", "nans", "infs", "1e9s", "1 s"] {
            assert!(interval(typed).is_err(), "{typed}");
        }
    }
}
