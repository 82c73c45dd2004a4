//! Options and arguments of `pageset report`.

use std::path::PathBuf;

use clap::ValueHint;

use crate::options::{OpeningArgs, TargetArgs};

const READING_REPORT: &str = "\
What is on the page, from top to bottom:
  the verdict of `pageset advise`, and what was recorded
  pages in page sets against their limits, refills, drains and free pages,
  over time
  which CPU refilled, drained and waited for zone locks, and when
  blocks by allocating and by freeing CPU; lifetimes, bursts, orders
  forecasts for other kernels and settings
  the evidence: every table, what is missing, and where it comes from

  Several recordings are compared first. For two, the first sentence has the
  largest difference. For more, the one that differs most comes first.

  Settings that changed while it was recorded are in all time lines, and terms
  explain themselves where the mouse rests on them.

  All charts of a recording show the same time: what is marked with the mouse in
  one is enlarged in all. Keys in a chart: arrows move the cursor, + and -
  enlarge and shrink, Esc shows all.

  The file has all it needs and asks no network for anything. Charts show the
  extremes of each interval of time, tables have their CSV to copy.

Examples:
  pageset report -o report.html          the bundled recording
  pageset report my.pgtrace -o report.html
  pageset report before.pgtrace after.pgtrace -o change.html";

/// Write recordings as one HTML page: verdict, time lines, heat maps, forecasts, tables
///
/// Gathers the results of `advise`, `stat` and `replay`, with the recording's course over time, in one file
/// that a browser shows without a network.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_REPORT)]
pub(crate) struct ReportArgs {
    /// Recordings to show [default: the bundled one]
    #[arg(value_name = "RECORDING", value_hint = ValueHint::FilePath)]
    pub(super) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) opening: OpeningArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}
