//! Options and arguments of `pageset bench`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use super::faults::args::FaultsArgs;
use super::machine::MachineCostsArgs;
use crate::options::OutputArgs;

/// Measure what this machine's memory costs: page faults, huge pages, steps of the allocator
///
/// No other program may run during a measurement, because all CPUs share the measured memory.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, subcommand_help_heading = "Measurements")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) benchmark: Benchmark,
}

/// The subcommands of `pageset bench`.
#[derive(Debug, Subcommand)]
pub(crate) enum Benchmark {
    Faults(FaultsArgs),
    Pages(BenchPagesArgs),
    Machine(MachineCostsArgs),
}

const READING_PAGES: &str = "\
How to read this:
  A huge page is cleared or copied because a program touches one place in it,
  the target. The cost is the sum of two times: the time to make the page ready,
  and then the time to read the bytes around the target.

  order     the order in which base pages are cleared or copied. Linux has had
            page-by-page (until 2017), converge-2018, sequential and
            ranges-target-last (2026)
  kernel    the instructions; libc is memset and memcpy of this system
  target    where in the page the program reads: start, middle, end, random
  load      alone: other CPUs do nothing; thrash: another CPU goes through
            64 MiB of memory meanwhile; every-cpu: all CPUs do the same work at
            the same time, each with its own pages
  op        median of the time until the page is ready
  touch     median of the time to read 4, 16 or 64 KiB around the target after
            that

  Pages are cold: before a page is measured, so many others are used that no
  cache contains it any more. The table shows medians over the targets; JSON and
  CSV have a row for each target.

With --choose, each row is a method to clear and copy a page of 2 MiB. Its cost
is the mean of clearing and copying, each with a touch of 4, 16 and 64 KiB
around the target, at the start, in the middle and at the end. The method with
the lowest cost is chosen. If the method has a neighbourhood (the part around
the target that comes last), the largest neighbourhood that costs at most 1 %
more is taken. The line below the table is the code that a program runs once, at
its start, to use this method. Without this line, a program uses the method that
the CPU's features suggest.

Examples:
  pageset bench pages --choose
  pageset bench pages --quick
  pageset bench pages --svg pages.svg --format json -o pages.json";

/// Clear and copy huge pages in every order, with every kind of instructions; takes five minutes
///
/// Measures the time to clear or copy a page, and the time that a program needs to read the page afterwards.
/// Measures all combinations of order, kind of instructions, target, number of bytes read, and load of the
/// other CPUs. Also measures single base pages and a page of 1 GiB.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_PAGES)]
pub(crate) struct BenchPagesArgs {
    /// Find the fastest method to clear and copy pages on this machine, in a second, instead of measuring all
    /// methods
    #[arg(long, conflicts_with_all = ["quick", "svg", "seed"])]
    pub(crate) choose: bool,
    /// Measure huge pages in a tenth of the rounds, base pages in a fifth, and no page of 1 GiB: takes less
    /// than a minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed for the random order of measurements and for random targets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Draw bars into FILE, as SVG: for each method, the time to clear or copy a page and then to touch a
    /// part of the page
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
