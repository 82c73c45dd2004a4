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

  If there are several recordings, the page begins with a comparison. For two,
  the first sentence names the largest difference. For more, the recording that
  differs most from the others comes first.

  Time lines show when settings changed. Move the mouse over a term to see its
  meaning.

  All charts of a recording show the same part of the time. Mark a part in one
  chart with the mouse to enlarge it in all charts. Keys in a chart: arrows move
  the cursor, + and - enlarge and shrink, Esc shows everything.

  The page needs no network. Charts show the smallest and the largest value of
  each interval of time. Each table can be copied as CSV.

Examples:
  pageset report -o report.html          the bundled recording
  pageset report my.pgtrace -o report.html
  pageset report before.pgtrace after.pgtrace -o change.html";

/// Write recordings as one HTML page: verdict, time lines, heat maps, forecasts, tables
///
/// Writes the results of `advise`, `stat` and `replay`, and charts over time, into one file, which a browser
/// shows without a network.
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
