//! Options and arguments of `pageset replay`.

use pageset_core::Policy;
use pageset_replay::Ladder;

use crate::choice::one_of;
use crate::options::{MachineArgs, RowsOutputArgs, SourcesArgs};
use crate::policy_name::policy;

const REPLAY_RECORDINGS: &str = "\
Recording to read, of any known format; `-` is the standard input. Several recordings must be of one load, on one \
machine and kernel, under the same settings; intervals are then made from all of them. For a folder with .pgtrace files, prints \
one line each and a summary [default: the bundled one]";

const READING_REPLAY: &str = "\
How to read this:
  Every row has the same load under another policy. Without -p, the first row
  has the recorded kernel's policy; the releases from 5.14 on follow.

  visits                    refills and drains; page sets exist to avoid these
  pages in, pages back      pages that refills took from the zone (\"alloc_zone\"
                            in the tables of the 2023 series), and pages that
                            drains gave back
  PCP pages, peak and idle  pages in page sets, which other CPUs cannot use: the
                            most at one time, and after a minute without work

  --all adds:
  zone lock acquisitions    visits, further slices of a drain, and blocks that
                            went past the page sets
  pages per acquisition     pages moved each time that the lock is taken
  drains by free_high       drains that high-order frees caused
  and a second table, in which the first row is 100

  80 % interval             the range that should hold the visits, or a series'
                            zone lock, in 80 % of cases. It held 83 % of real
                            runs where repeats agree within 25 %, and 85 % of
                            others; JSON has more intervals

  Runs of a load differ. With one recording, intervals include an estimate of
  how much runs differ. Several recordings of the load, made one after the
  other, show how much runs really differ. Counts are those of the first
  recording.

  Below the table you see what the recorded kernel did, and what that kernel's
  policy does in a replay. If the two differ by more than a quarter, a warning
  is printed above the tables.

  Under the recorded kernel's policy, page sets begin with the pages that the
  kernel's page sets held. Under every other policy they begin in a steady
  state: pageset plays the recording twice, and counts the second time.

  A replay counts; it does not measure time. A replay keeps the recorded order
  of events. Under another policy, CPUs would have waited for other times, and
  some events would have come earlier or later.

Examples:
  pageset replay -p 6.1,6.12
  pageset replay data/traces/k612_2c_tcp.pgtrace --format json -o tcp.json
  pageset replay data/pairs/k612_tmpfs_def_r[123].pgtrace  three runs of a load
  pageset replay --series --cpus 112     the 2023 series, on its own machine
  pageset replay --series=batch          the batch sizes of the 2018 study
  pageset replay --sweep batch=31,63,127 high=186,378,762
  pageset replay -p linux-6.18 --set vm.percpu_pagelist_high_fraction=8
  pageset convert my.pgtrace big.toml --to layout; $EDITOR big.toml
  pageset replay --layout big.toml my.pgtrace
  zcat trace.txt.gz | pageset replay - --layout big.toml
  pageset replay -p 6.12,6.18 data/pairs  all .pgtrace files of a folder";

/// Run a recording under other kernels' policies, one row each
///
/// Plays every allocation and free of a recording on the page sets of each policy, on the recorded CPUs and
/// in the recorded order. Counts what the page sets do.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_REPLAY)]
#[command(mut_arg("recordings", |recordings| recordings.help(REPLAY_RECORDINGS)))]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) source: SourcesArgs,
    /// Policy to replay under; the first is the base. May be repeated, or be a list with commas [default: the
    /// recorded kernel's, then the releases from 5.14 on]
    #[arg(
        short,
        long = "policy",
        value_name = "NAME|FILE",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    #[arg(value_parser = policy())]
    pub(crate) policies: Vec<&'static Policy>,
    /// Show every policy, and every column
    #[arg(long, conflicts_with_all = ["series", "sweep"])]
    pub(crate) all: bool,
    /// Also print where counts come from, what was left out, and the command that repeats the result
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Replay under the policies of a published table: the 2023 series patch by patch, the 2016 high-order
    /// series, or the batch sizes of the 2018 study [default: series]
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "series")]
    #[arg(conflicts_with_all = ["policies", "sweep"], value_parser = one_of(Ladder::ALL.map(|ladder| (ladder.name(), ladder))))]
    pub(crate) series: Option<Ladder>,
    /// Try values for a policy's constants (batch, high, scale-max) and for settings
    /// (vm.percpu_pagelist_high_fraction, vm.min_free_kbytes, vm.watermark_scale_factor, vm.stat_interval),
    /// in every combination. The policy is the one that -p names, or the recorded kernel's. Write a
    /// RECORDING before this option
    #[arg(long, value_name = "KEY=VALUES", num_args = 1..)]
    pub(crate) sweep: Vec<String>,
    /// Change this constant or setting in every policy; --sweep has the same keys. May be repeated
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["series", "sweep"])]
    pub(crate) set: Vec<String>,
    /// Replay on N CPUs, which share the recorded memory; CPUs that were not recorded stay idle
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) cpus: Option<u32>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) output: RowsOutputArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use pageset_report::Format;

    use crate::args::{Args, Command};
    use crate::options::RowsFormat;

    #[test]
    fn policies_may_be_repeated_and_be_lists() {
        let args = Args::parse_from(["pageset", "replay", "-p", "linux-6.1,linux-6.6", "-p", "linux-6.12"]);
        let Command::Replay(replay) = args.command else { panic!("replay was asked for") };
        let names: Vec<_> = replay.policies.iter().map(|policy| policy.name).collect();
        assert_eq!(names, ["linux-6.1", "linux-6.6", "linux-6.12"]);
        assert_eq!(replay.output.format, RowsFormat::Printed(Format::Table));
    }
}
