//! Options and arguments of `pageset bench`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use super::faults::args::FaultsArgs;
use super::machine::MachineCostsArgs;
use crate::options::OutputArgs;

/// Measure what this machine's memory costs: page faults, huge pages, steps of the allocator
///
/// Measurements need a machine that does nothing else: what is measured is memory, which all CPUs share.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, subcommand_help_heading = "Measurements")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) benchmark: Benchmark,
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum Benchmark {
    Faults(FaultsArgs),
    Pages(BenchPagesArgs),
    Machine(MachineCostsArgs),
}

const READING_PAGES: &str = "\
How to read this:
  A huge page is cleared or copied because a program touches one place of it,
  the target. What counts is both times together: until the page is ready, and
  until the program has read what is around the target.

  order     in which base pages are visited; Linux's are page-by-page (until
            2017), converge-2018, sequential and ranges-target-last (2026)
  kernel    which instructions; libc is memset and memcpy of this system
  target    where in the page the program reads: start, middle, end, random
  load      alone; thrash: another CPU sweeps through 64 MiB meanwhile;
            every-cpu: all CPUs do the same at once, each with its own pages
  op        until the page is ready, median
  touch     reading 4, 16 or 64 KiB around the target afterwards, median

  Pages are cold: as many others are used in between that the caches have
  forgotten them. The table shows medians over the targets; JSON and CSV have
  a row for each.

With --choose, each row is a way to clear and copy a page of 2 MiB. Its cost
is the mean of clearing and copying, each with a touch of 4, 16 and 64 KiB
around the target, at the start, in the middle and at the end. The method with
the least cost is chosen; of its neighbourhoods, the largest that costs at most
1 % more. The line below the table is what a program says once, at its start,
to get this method. Without it, a program gets what the CPU's features suggest.

Examples:
  pageset bench pages --choose
  pageset bench pages --quick
  pageset bench pages --svg pages.svg --format json -o pages.json";

/// Clear and copy huge pages in every order, with every kernel; takes five minutes
///
/// Measures the operation, and its cost to the program that caused it: orders x kernels x place of the touch
/// x size of the touch x load of the other CPUs. Also single base pages and a page of 1 GiB.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_PAGES)]
pub(crate) struct BenchPagesArgs {
    /// Choose how programs should clear and copy pages here, in a second, instead of measuring everything
    #[arg(long, conflicts_with_all = ["quick", "svg", "seed"])]
    pub(crate) choose: bool,
    /// A tenth of the rounds, and no page of 1 GiB: less than a minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed of the order of measurements and of random targets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Draw the totals into FILE, as SVG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
