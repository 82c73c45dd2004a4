//! What can be typed. Every text here is a help page, a man page and a completion.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use pageset_core::policy::FORMER_NAMES;
use pageset_core::{POLICIES, Policy};
use pageset_lab::reproduce::{STUDIES, Study};
use pageset_workload::contest::Entrant;
use pageset_workload::{Class, Ladder, Mode, VmSettings};

use crate::advise::AdviseArgs;
use crate::bench::BenchArgs;
use crate::calibrate::CalibrateArgs;
use crate::choice::one_of;
use crate::contest::ContestArgs;
use crate::export::ExportArgs;
use crate::options::{
    MachineArgs, MachineFacts, OpeningArgs, OutputArgs, RowsOutputArgs, SourceArgs, TargetArgs,
};
use crate::page::PageArgs;
use crate::pft::PftArgs;
use crate::record::RecordArgs;
use crate::report::ReportArgs;
use crate::sweep::SweepArgs;
use crate::top::TopArgs;

const EXAMPLES: &str = "\
Examples:
  pageset replay                         the bundled trace, every policy
  pageset replay -p linux-6.6,linux-6.12 my.pgtrace
                                         two kernels; the first is the base
  pageset stat my.pgtrace                who allocates, who frees, how soon
  sudo pageset record -- make -j4        what this machine does, as a trace
  pageset convert trace.dat my.pgtrace   files of ftrace, perf or trace-cmd

Where data comes from:
  A trace is a recording of the kernel's page events. Without a TRACE,
  commands use one that is built in: Lua compiled with make -j4 on Linux
  6.18, 2 CPUs. More are in data/traces/ of the sources. `pageset record` makes
  one of your own machine; that is the only step that needs privileges.

Exit status: 0 done, 1 failed, 2 the command line is wrong.";

/// Replay, inspect and convert recordings of a Linux kernel's page allocation.
///
/// A recording holds every page that a kernel allocated and freed, and on which CPU. pageset tells what is in it, and
/// what the per-CPU page sets (PCP) of other kernels would have made of the same load: how often they fetch pages from
/// the zone, how often they give pages back, and so how often the zone lock is taken.
#[derive(Debug, Parser)]
#[command(name = "pageset", version, after_help = EXAMPLES, max_term_width = 80)]
#[command(arg_required_else_help = true, subcommand_help_heading = "Commands")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands, in the order in which help lists them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Replay(ReplayArgs),
    Advise(AdviseArgs),
    Verify(VerifyArgs),
    Contest(ContestArgs),
    Reproduce(ReproduceArgs),
    Simulate(SimulateArgs),
    Pft(PftArgs),
    Bench(BenchArgs),
    Calibrate(CalibrateArgs),
    Sweep(SweepArgs),
    Top(TopArgs),
    Stat(StatArgs),
    Report(ReportArgs),
    Record(RecordArgs),
    Convert(ConvertArgs),
    Export(ExportArgs),
    Layout(LayoutArgs),
    Policies(PoliciesArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

const READING_REPLAY: &str = "\
How to read this:
  The load is the same in every row; what differs is the policy. The first
  row is the base: the second table has it as 100.

  zone lock acquisitions    what page sets exist to avoid
  pages per acquisition     how well each of them is used
  refilled pages            pages that came from the zone (\"alloc_zone\" in the
                            tables of the 2023 series)
  drains by free_high       page sets emptied because of high-order frees
  PCP pages, peak and end   what it costs: memory that other CPUs cannot use;
                            \"idle\" is after a minute without work

  80 % interval             of the acquisitions, or of a ladder's zone lock. It
                            held 81 % of real runs where repeats agree within
                            25 %, and 75 % of others; JSON has more intervals

  Below the tables you see what the recorded kernel did, and what its own policy
  does with the recording. If the two differ by more than a quarter, a warning
  stands above the tables.

  The recorded kernel's policy begins with what its page sets held. Every other
  policy begins in its own steady state: pageset plays the recording once to get
  there, and counts the second time.

  A replay counts; it does not measure time. It keeps the recorded order of
  events. Under another policy, CPUs would have waited for other times, and some
  events would have come earlier or later.

Examples:
  pageset replay -p linux-6.1,linux-6.12
  pageset replay data/traces/k612_2c_tcp.pgtrace --format json -o tcp.json
  pageset replay --ladder --cpus 112     the series, as on its own machine
  pageset replay --ladder=batch          the batch sizes of the 2018 study
  pageset replay --sweep batch=31,63,127 high=186,378,762
  pageset replay -p linux-6.18 --set vm.percpu_pagelist_high_fraction=8
  pageset layout -o big.toml; $EDITOR big.toml; pageset replay --layout big.toml
  zcat trace.txt.gz | pageset replay - --layout big.toml";

/// Run a trace under other kernels' policies, one row each
///
/// Plays every allocation and free of a trace on the page sets of each policy, on the recorded CPUs and in the recorded
/// order. Counts what the page sets do.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_REPLAY)]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Policy to replay under; the first is the base. May be repeated, or be a list with commas [default: all]
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',', hide_possible_values = true)]
    #[arg(value_parser = policy())]
    pub(crate) policies: Vec<&'static Policy>,
    /// Policies of a published table: the 2023 series patch by patch, the 2016 high-order series, or the batch sizes of
    /// the 2018 study [default: series]
    #[arg(short, long, value_name = "NAME", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "series")]
    #[arg(conflicts_with_all = ["policies", "sweep"], value_parser = one_of(Ladder::ALL.map(|ladder| (ladder.name(), ladder))))]
    pub(crate) ladder: Option<Ladder>,
    /// Try values for a policy's constants (batch, high, scale-max) and for settings (vm.percpu_pagelist_high_fraction,
    /// vm.min_free_kbytes, vm.watermark_scale_factor, vm.stat_interval), in every combination. The policy is the one
    /// that -p names, else the recorded kernel's. A TRACE stands before it
    #[arg(short, long, value_name = "KEY=VALUES", num_args = 1..)]
    pub(crate) sweep: Vec<String>,
    /// Replay every policy with this constant or setting, of those that --sweep knows. May be repeated
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["ladder", "sweep"])]
    pub(crate) set: Vec<String>,
    /// Replay on N CPUs, which share the recorded memory; the CPUs beyond the recorded ones stay idle
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) cpus: Option<u32>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) output: RowsOutputArgs,
}

/// The name that stands for the recorded kernel's own policy.
const AUTO: &str = "auto";

const READING_VERIFY: &str = "\
How to read this:
  refills, exact    fetches of pages from the zone: how many the recorded kernel
                    made, and how many of them the policy makes at the same
                    moment and of the same size
  drains, exact     the same for pages that frees gave back
  same pages        of the pages drained, how many the policy drains at the same
                    place; counted where a list's contents are known
  ticks             periodic work that drained what the policy drains
  count, high       page sets that /proc/zoneinfo showed as the policy has them
  differ            decisions that differ; the line below the table names the
                    known reasons, and counts those without one

Modes:
  step    after each prediction, the kernel's own decision is carried out;
          samples of /proc/zoneinfo correct count and high
  blind   as step, but samples correct nothing; they are only compared
  free    the policy's own decisions are carried out, so errors add up

Against another kernel or setting:
  --against names traces of the same load under another kernel or setting. The
  first traces are replayed under that kernel and setting, and the forecast is
  compared with what really happened. Nothing is compared step by step.
  was, is, predicted  means over the runs
  noise               how far the runs behind --against differ from each other
  last columns        how many of those runs lie in the forecast's interval

Examples:
  pageset verify data/traces/*.pgtrace
  pageset verify k61_2c_tcp.pgtrace --against k612_2c_tcp.pgtrace
  pageset verify my.pgtrace --mode free --policy linux-6.7
  pageset verify my.pgtrace --explain 1 --class hidden-at-start";

/// Compare each decision of the recorded kernel with a policy's
///
/// Plays the recorded allocations and frees on the core's page sets, and compares every refill, drain, tick and sample
/// with the kernel's own events. With --against, checks forecasts for another kernel or setting.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_VERIFY)]
pub(crate) struct VerifyArgs {
    /// Traces to verify, of any known format [default: the bundled one]
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) traces: Vec<PathBuf>,
    /// Policy that should decide as the kernel did; `auto` is the recorded kernel's own
    #[arg(short, long, value_name = "NAME", default_value = AUTO, hide_possible_values = true)]
    #[arg(value_parser = policy_or_auto())]
    pub(crate) policy: AutoOr,
    /// How far the kernel's own events steer the comparison
    #[arg(long, value_name = "MODE", default_value = Mode::Step.name())]
    #[arg(value_parser = one_of(Mode::ALL.map(|mode| (mode.name(), mode))))]
    pub(crate) mode: Mode,
    /// Show the events around the N-th decision that differs
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) explain: Option<u64>,
    /// Count only differences of this class for --explain
    #[arg(long, value_name = "CLASS", requires = "explain")]
    #[arg(value_parser = one_of(Class::ALL.map(|class| (class.name(), class))))]
    pub(crate) class: Option<Class>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Judge the kernel under a setting that the recorded machine did not have: vm.percpu_pagelist_high_fraction, vm.min_free_kbytes,
    /// vm.watermark_scale_factor or vm.stat_interval. May be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<VmSettings>,
    /// Check forecasts instead: traces of the same load under another kernel or setting, and repeats of them
    #[arg(long, value_name = "TRACE", num_args = 1.., value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["policy", "mode", "explain", "layout", "page_size", "node_cpus", "set"])]
    pub(crate) against: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) opening: OpeningArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

const READING_REPRODUCE: &str = "\
How to read this:
  Each table is printed with the published value first and ours beside it.
  Below it stands how well they agree: the order of the rows (Spearman), the
  direction in which each row differs from the base row, the median error.
  Directions stand beside the null model: \"nothing ever changes\" has many of
  them right. A group of tables has no skill here if fewer than a third of its
  published changes are met, or if the null model is not beaten (sign test, p <
  0.05). The last section lists what did not reproduce.

  measured   on this machine
  simulated  our allocator on a modelled machine, in virtual time
  fitted     used to choose a parameter: agreement there means nothing. Only
             base rows are used so; all other rows are predictions

Examples:
  pageset reproduce pcp-auto-tuning --quick
  pageset reproduce batch-size --svg plots -o batch-size.txt
  pageset reproduce high-order-pcp --format json | jq .tables[].spearman";

/// Run a published study again, its tables with our values beside the printed ones
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_REPRODUCE)]
pub(crate) struct ReproduceArgs {
    /// Study to run
    #[arg(value_name = "STUDY", value_parser = study())]
    pub(crate) study: &'static dyn Study,
    /// Fewer and shorter runs: to see whether it works, not to cite
    #[arg(short, long)]
    pub(crate) quick: bool,
    /// How many runs to do at once; the result is the same [default: one for each CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// With how many seeds to simulate each run [default: 5; with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: Option<u64>,
    /// Choose fitted parameters again, on base rows only, and write them to FILE; takes minutes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) fit: Option<PathBuf>,
    /// Draw figures into DIR; it is created if it is missing
    #[arg(long, value_name = "DIR", help_heading = "Output", value_hint = ValueHint::DirPath)]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

const READING_SIMULATE: &str = "\
How to read this:
  score             units of work per second, all CPUs together
  zone lock         share of the CPUs' busy time that they waited for a zone's
                    lock or held it (\"zone lock%\" of the 2023 series)
  LRU lock          the same for the lock of the LRU lists: CPUs that no longer
                    wait for the zone lock often wait for this one
  free_high         page sets emptied because of high-order frees
  alloc_zone        pages that page sets fetched from zones
  PCP pages, peak   most pages in all page sets at once
  PCP pages, idle   what they keep after 30 idle seconds
  alloc p50, p99    half, or 99 %, of the allocations take no longer than this
  behind drains     how long the average allocation waited while another CPU gave
                    pages back: what bulk frees cost others
  digest            equal digests, equal runs: same seed, machine and commit

  With owned-blocks, which has no page sets and no locks, there are besides:
  visits            times a CPU took a zone's lock, or changed what all CPUs of
                    a zone share, or a pageblock that another CPU had changed
                    less than 10 us before, as in `pageset contest`
  lines             share of the CPUs' busy time until lines of the allocator
                    came from other CPUs
  held, mean        free pages that CPUs kept back from all others
  whole, end        pageblocks that are free as a whole in the end

  Every figure is simulated. Compare rows, not machines; the machine file says
  which costs are measured and which are guessed.

Examples:
  pageset simulate --list
  pageset simulate -w page_fault1 -p linux-6.6,linux-6.12
  pageset simulate -m sapphire-rapids -w kbuild --cpus 112 -p linux-6.6,patch7
  pageset simulate -w af-unix --set copy_kib_ns=30 --check
  pageset simulate -m xeon-36 -w purger -p linux-6.18,owned-blocks
  pageset simulate -m epyc-768 -w trace:my.pgtrace";

/// Run a workload on a simulated machine, one row for each policy
///
/// Runs the allocator on virtual CPUs in virtual time: locks are waited for, cache lines travel, work takes as long as
/// the machine's file says. So it shows what a policy would do on a machine that is not here.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_SIMULATE)]
pub(crate) struct SimulateArgs {
    /// Bundled machine, or a machine file
    #[arg(short, long, value_name = "MACHINE", default_value = "epyc-2", value_hint = ValueHint::FilePath)]
    pub(crate) machine: String,
    /// Workload to run; trace:FILE plays a recording on all CPUs
    #[arg(short, long, value_name = "NAME", default_value = "page_fault1")]
    pub(crate) workload: String,
    /// CPUs that the workload uses, the first ones [default: all]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpus: Option<u32>,
    /// Policy to run under; the first is the base, and brings the kernel around the allocator
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',', hide_possible_values = true)]
    #[arg(default_value = "linux-6.6,linux-6.12", value_parser = policy_names())]
    pub(crate) policies: Vec<String>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many seeds to run each policy with, from --seed on: the table then has means, and how far they vary
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
    /// Set a parameter of the workload, or of the kernel: vm.percpu_pagelist_high_fraction, vm.min_free_kbytes,
    /// vm.watermark_scale_factor, vm.stat_interval; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, u64)>,
    /// Virtual time before measuring begins [default: the workload's]
    #[arg(long, value_name = "MS")]
    pub(crate) warmup_ms: Option<u64>,
    /// Virtual time that is measured [default: the workload's]
    #[arg(long, value_name = "MS")]
    pub(crate) duration_ms: Option<u64>,
    /// How many runs to do at once; the result is the same [default: one for each CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Run everything twice and fail if the results differ
    #[arg(long)]
    pub(crate) check: bool,
    /// List machines, workloads and their parameters instead
    #[arg(short, long)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// A parameter of a workload, as typed.
fn setting(text: &str) -> Result<(String, u64), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, e.g. fault_ns=800")?;
    let value = value.parse().map_err(|_| format!("`{value}` is not a whole number"))?;
    Ok((key.to_owned(), value))
}

const READING_STAT: &str = "\
How to read this:
  remote frees  blocks freed by another CPU than the one that allocated them:
                they pile up in one page set while the other is refilled
  unmatched     frees of blocks whose allocation is not in the recording
  lifetimes     blocks that live short come back to the page set they are
                from; a load whose blocks live long goes through the zone
  runs          how much a CPU allocates before it frees: a run longer than
                what the page set holds takes the zone lock
  what the kernel itself moved
                a replay under the recorded kernel's own policy should come
                near. Refills and drains are grouped from single events:
                those of one CPU without another event between

  What stays 0 may not have been recorded: see the events by kind.

Examples:
  pageset stat
  pageset stat my.pgtrace --format json | jq .cpus.remote_percent";

/// Tell what is in a trace, without replaying it
///
/// Reads a trace once and counts: orders and migratetypes, which CPU frees whose pages, how long blocks live, bursts,
/// what the kernel itself refilled and drained, and the zones before and after.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_STAT)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const READING_CONVERT: &str = "\
Formats read, found out by content:
  .pgtrace          this tool's own: compressed, checksummed, with an index
  .pcpt[.xz]        the project's recorder, with its .json[.xz] beside it
  trace.dat         of trace-cmd, versions 6 and 7
  perf.data         of `perf record`, but not with -z or into a pipe
  text              of ftrace (/sys/kernel/tracing/trace), `perf script` or
                    `trace-cmd report`
  Each may be packed: .gz, .zst, .xz (with the feature xz)

Examples:
  perf script --ns -F comm,pid,cpu,time,event,trace > trace.txt
  pageset convert trace.txt my.pgtrace";

/// Write a trace of any known format as .pgtrace
///
/// The result is a fraction of the size of text and is read many times faster. Everything that is known of the recording
/// is kept: machine, states before and after, samples, losses.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_CONVERT)]
pub(crate) struct ConvertArgs {
    /// Trace to read; `-` is the standard input
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    /// File to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Replace OUT if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Leave out the pages that the recorder itself used. Only files of `pageset record` tell them apart
    #[arg(long)]
    pub(crate) without_recorder: bool,
    #[command(flatten)]
    pub(crate) opening: OpeningArgs,
}

const READING_LAYOUT: &str = "\
How to use this:
  pageset layout -o big.toml            the bundled trace's layout
  $EDITOR big.toml                      more memory, other watermarks, sysctls
  pageset replay --layout big.toml      the same load on that machine

  pageset layout zoneinfo.txt -o my.toml
  pageset layout arm.txt --page-size 64K -o arm.toml
  pageset layout two.txt --node-cpus 0=0-1,1=2-3 -o two.toml

  In place of a trace, this takes a copy of /proc/zoneinfo, of any kernel since
  2.6.32. The file says neither the size of a page nor which CPUs are local to
  which node. Where its numbers contradict pages of 4 KiB, or do not show the
  CPUs of several nodes, an error asks for these options. What is assumed
  stands in the list `assumed` of the layout, and below each result.

  Text traces do not describe a machine. Then one is made up from what the
  events show, with Linux's defaults, and a comment says so. What a machine of
  `pageset simulate` costs in time is in a file of another kind, which `pageset
  calibrate machine` writes.";

/// Print the layout of a trace's machine, or of a copy of /proc/zoneinfo, to edit and to replay on
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_LAYOUT)]
pub(crate) struct LayoutArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) facts: MachineFacts,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

const READING_POLICIES: &str = "\
How to read this:
  A policy is what one kernel version decides: how many pages a refill
  fetches, when and how much a page set gives back, how its limit moves.
  Names are stable; a change in what one means is listed in the changelog.

Examples:
  pageset policies
  pageset policies linux-6.12";

/// List the policies, or show one with all its rules and constants
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_POLICIES)]
pub(crate) struct PoliciesArgs {
    /// Policy to show in full [default: list all]
    #[arg(hide_possible_values = true, value_parser = policy())]
    pub(crate) name: Option<&'static Policy>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const READING_COMPLETIONS: &str = "\
Examples:
  cd ~/.local/share/bash-completion/completions
  pageset completions bash > pageset

  pageset completions zsh > ~/.zfunc/_pageset
  pageset completions fish > ~/.config/fish/completions/pageset.fish";

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one for each command
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write pageset.1, pageset-replay.1 … into DIR; it is created if it is missing
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
}

/// Ends the program as for any other mistake in the command line.
pub(crate) fn refuse(problem: impl std::fmt::Display) -> ! {
    Args::command().error(ErrorKind::ValueValidation, problem).exit()
}

fn study() -> impl TypedValueParser<Value = &'static dyn Study> {
    one_of(STUDIES.iter().map(|study| (PossibleValue::new(study.name()).help(study.summary()), *study)))
}

/// The policy that was named, or the recorded kernel's own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AutoOr {
    Auto,
    Named(&'static Policy),
}

fn policy_or_auto() -> impl TypedValueParser<Value = AutoOr> {
    let named = POLICIES.iter().map(|policy| (named(policy), AutoOr::Named(policy)));
    one_of(std::iter::once((AUTO.into(), AutoOr::Auto)).chain(named))
}

pub(crate) fn policy() -> impl TypedValueParser<Value = &'static Policy> {
    one_of(POLICIES.iter().map(|policy| (described(policy), policy)))
}

fn described(policy: &'static Policy) -> PossibleValue {
    named(policy).help(policy.summary)
}

/// Its name, and those that it had before.
fn named(policy: &'static Policy) -> PossibleValue {
    let former = FORMER_NAMES.iter().filter(|(_, today)| *today == policy.name).map(|(former, _)| *former);
    PossibleValue::new(policy.name).aliases(former)
}

/// Names of policies, and of allocators of our own.
fn policy_names() -> PossibleValuesParser {
    let ours = [Entrant::OWNED_BLOCKS].into_iter().chain(Entrant::ablations());
    let ours = ours.map(|entrant| PossibleValue::new(entrant.name()).help(entrant.summary()));
    PossibleValuesParser::new(POLICIES.iter().map(described).chain(ours))
}

#[cfg(test)]
mod tests {
    use crate::options::RowsFormat;
    use clap::CommandFactory;
    use pageset_report::Format;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn policies_may_be_repeated_and_be_lists() {
        let args = Args::parse_from(["pageset", "replay", "-p", "linux-6.1,linux-6.6", "-p", "linux-6.12"]);
        let Command::Replay(replay) = args.command else { panic!("replay was asked for") };
        let names: Vec<_> = replay.policies.iter().map(|policy| policy.name).collect();
        assert_eq!(names, ["linux-6.1", "linux-6.6", "linux-6.12"]);
        assert_eq!(replay.output.format, RowsFormat::Printed(Format::Table));
    }
}
