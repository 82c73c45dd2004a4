//! What can be typed. Every text here is a help page, a man page and a completion.

use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use pageset_core::Policy;
use pageset_replay::{Class, Ladder, Mode, VmSettings};
use pageset_study::reproduce::{STUDIES, Study};

use crate::advise::AdviseArgs;
use crate::bench::BenchArgs;
use crate::choice::one_of;
use crate::options::{MachineArgs, OpeningArgs, OutputArgs, RowsOutputArgs, SourcesArgs};
use crate::page::PageArgs;
use crate::policy_name::{AUTO, AutoOr, policy, policy_or_auto, policy_or_ours};
use crate::record::RecordArgs;
use crate::report::ReportArgs;
use crate::simulate::RecordingArgs;
use crate::sweep::SweepArgs;
use crate::top::TopArgs;

const EXAMPLES: &str = "\
Examples:
  sudo pageset advise -- make -j4        is it the page sets?
  sudo pageset record -- make -j4        a recording of what this machine does
  pageset stat my.pgtrace                who allocates, who frees, how soon
  pageset replay my.pgtrace              what other kernels would have done
  pageset replay -p 6.6,6.12 my.pgtrace  two kernels; the first is the base
  pageset convert trace.dat my.pgtrace   files of ftrace, perf or trace-cmd

Where data comes from:
  A recording holds the kernel's page events. Without a RECORDING, commands
  use one that is built in: Lua compiled with make -j4 on Linux 6.18, 2 CPUs.
  More are in data/traces/ of the sources. `pageset record` makes one of your
  own machine; that needs root.

Exit status: 0 done, 1 failed, 2 the command line is wrong.";

/// What Linux's page allocation does on your machine, and what other settings and kernels would do.
///
/// A recording holds every page that a kernel allocated and freed, and on which CPU. pageset tells what is in it, and
/// what the per-CPU page sets (PCP) of other kernels would have made of the same load: how often they fetch pages from
/// the zone, how often they give pages back, and so how often the zone lock is taken.
#[derive(Debug, Parser)]
#[command(name = "pageset", version, after_help = EXAMPLES, max_term_width = 80)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands, in the order in which help lists them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Record(RecordArgs),
    Advise(AdviseArgs),
    Top(TopArgs),
    Stat(StatArgs),
    Replay(ReplayArgs),
    Report(ReportArgs),
    Verify(VerifyArgs),
    Convert(ConvertArgs),
    Simulate(SimulateArgs),
    Sweep(SweepArgs),
    Reproduce(ReproduceArgs),
    Bench(BenchArgs),
    Policies(PoliciesArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// What the commands are about, in the order of a user's day. Those that are not named here are for shells and packagers.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Your machine", &["record", "advise", "top"]),
    ("A recording", &["stat", "replay", "report", "verify", "convert"]),
    ("A larger machine", &["simulate", "sweep", "reproduce"]),
    ("This machine's costs", &["bench"]),
    ("Kernels", &["policies"]),
];

/// What can be typed, with commands in groups.
pub(crate) fn definition() -> clap::Command {
    let definition = Args::command();
    let about = |name: &str| {
        let command = definition.find_subcommand(name);
        command.and_then(clap::Command::get_about).map(ToString::to_string).unwrap_or_default()
    };
    let mut groups = String::new();
    for (group, names) in GROUPS {
        groups += &format!("{group}:\n");
        for name in names {
            let words = textwrap_at(&about(name), WIDTH - NAME_WIDTH);
            groups += &format!("  {name:<width$}{words}\n", width = NAME_WIDTH - 2);
        }
        groups.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{options-heading}}\n{{options}}{{after-help}}"
    );
    definition.help_template(template.replace("{options-heading}", "Options:"))
}

/// Columns of a help page, and those that names take.
const WIDTH: usize = 80;
const NAME_WIDTH: usize = 13;

/// Words in lines of this width, the second one and all that follow indented as far as the first one stands.
fn textwrap_at(text: &str, width: usize) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_ascii_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines.join(&format!("\n{}", " ".repeat(NAME_WIDTH)))
}

const REPLAY_RECORDINGS: &str = "\
Recording to read, of any known format; `-` is the standard input. Several are repeats of one load, on one machine and \
kernel, under the same settings: intervals are then of all. A folder with .pgtrace files is a fleet: one line each, and \
a summary [default: the bundled one]";

const READING_REPLAY: &str = "\
How to read this:
  The load is the same in every row; what differs is the policy. Without -p,
  the first row is the recorded kernel's, and the releases from 5.14 on follow.

  visits                    refills and drains: what page sets exist to avoid
  pages in, pages back      pages that refills took from the zone (\"alloc_zone\"
                            in the tables of the 2023 series), and that drains
                            gave back
  PCP pages, peak and idle  what it costs: memory that other CPUs cannot use;
                            \"idle\" is after a minute without work

  With --all there are besides:
  zone lock acquisitions    visits, further slices of a drain, and blocks that
                            went past the page sets
  pages per acquisition     how well each taking of the lock is used
  drains by free_high       page sets emptied because of high-order frees
  and a second table, in which the first row is 100

  80 % interval             of the visits, or of a series' zone lock. It held
                            85 % of real runs where repeats agree within 25 %,
                            and 81 % of others; JSON has more intervals

  Runs of a load differ. From one recording, an interval estimates by how much;
  several recordings of the load, made one after the other, show it. Counts are
  those of the first.

  Below the table you see what the recorded kernel did, and what its own policy
  does with the recording. If the two differ by more than a quarter, a warning
  stands above the tables.

  The recorded kernel's policy begins with what its page sets held. Every other
  policy begins in its own steady state: pageset plays the recording once to get
  there, and counts the second time.

  A replay counts; it does not measure time. It keeps the recorded order of
  events. Under another policy, CPUs would have waited for other times, and some
  events would have come earlier or later.

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
/// Plays every allocation and free of a recording on the page sets of each policy, on the recorded CPUs and in the recorded
/// order. Counts what the page sets do.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_REPLAY)]
#[command(mut_arg("recordings", |recordings| recordings.help(REPLAY_RECORDINGS)))]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) source: SourcesArgs,
    /// Policy to replay under; the first is the base. May be repeated, or be a list with commas [default: the recorded
    /// kernel's, then the releases from 5.14 on]
    #[arg(
        short,
        long = "policy",
        value_name = "NAME|FILE",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    #[arg(value_parser = policy())]
    pub(crate) policies: Vec<&'static Policy>,
    /// Every policy, and every column
    #[arg(long, conflicts_with_all = ["series", "sweep"])]
    pub(crate) all: bool,
    /// Say where each count comes from, what was left out, and how to get the result again
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Policies of a published table: the 2023 series patch by patch, the 2016 high-order series, or the batch sizes of
    /// the 2018 study [default: series]
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "series")]
    #[arg(conflicts_with_all = ["policies", "sweep"], value_parser = one_of(Ladder::ALL.map(|ladder| (ladder.name(), ladder))))]
    pub(crate) series: Option<Ladder>,
    /// Try values for a policy's constants (batch, high, scale-max) and for settings (vm.percpu_pagelist_high_fraction,
    /// vm.min_free_kbytes, vm.watermark_scale_factor, vm.stat_interval), in every combination. The policy is the one
    /// that -p names, else the recorded kernel's. A RECORDING stands before it
    #[arg(long, value_name = "KEY=VALUES", num_args = 1..)]
    pub(crate) sweep: Vec<String>,
    /// Replay every policy with this constant or setting, of those that --sweep knows. May be repeated
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["series", "sweep"])]
    pub(crate) set: Vec<String>,
    /// Replay on N CPUs, which share the recorded memory; the CPUs beyond the recorded ones stay idle
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) cpus: Option<u32>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) output: RowsOutputArgs,
}

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
  --against names recordings of the same load under another kernel or setting. The
  first recordings are replayed under that kernel and setting, and the forecast is
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
    /// Recordings to verify, of any known format [default: the bundled one]
    #[arg(value_name = "RECORDING", value_hint = ValueHint::FilePath)]
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
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
    /// Check forecasts instead: recordings of the same load under another kernel or setting, and repeats of them
    #[arg(long, value_name = "RECORDING", num_args = 1.., value_hint = ValueHint::FilePath)]
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
    #[arg(long)]
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
                    less than 10 us before, as with --recording
  lines             share of the CPUs' busy time until lines of the allocator
                    came from other CPUs
  held, mean        free pages that CPUs kept back from all others
  whole, end        pageblocks that are free as a whole in the end

  Every figure is simulated. Compare rows, not machines; the machine file says
  which costs are measured and which are guessed.
";

const SIMULATE_EXAMPLES: &str = "\
Examples:
  pageset simulate --list
  pageset simulate -w page_fault1 -p linux-6.6,linux-6.12
  pageset simulate -m sapphire-rapids -w kbuild --cpus 112 -p linux-6.6,patch7
  pageset simulate -w af-unix --set copy_kib_ns=30 --check
  pageset simulate -m xeon-36 -w purger -p linux-6.18,owned-blocks
  pageset simulate -m epyc-768 -w trace:my.pgtrace
  pageset simulate --recording my.pgtrace -p 6.1,6.12";

/// Run a workload on a simulated machine, one row for each policy
///
/// Runs the allocator on virtual CPUs in virtual time: locks are waited for, cache lines travel, work takes as long as
/// the machine's file says. So it shows what a policy would do on a machine that is not here.
#[derive(Debug, clap::Args)]
#[command(after_long_help = [READING_SIMULATE, crate::simulate::READING, "", SIMULATE_EXAMPLES].join("\n"))]
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
    /// [default: linux-6.6,linux-6.12; with --recording linux-6.12,linux-6.18,linux-6.19,pcp-buddy-rfc]
    #[arg(
        short,
        long = "policy",
        value_name = "NAME|FILE",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    #[arg(value_parser = policy_or_ours())]
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
    /// Play a recording's blocks on whole allocators instead, and count how often CPUs meet; without FILE the bundled one
    #[arg(long, value_name = "FILE", num_args = 0..=1, value_hint = ValueHint::FilePath, help_heading = "A recording")]
    #[arg(conflicts_with_all = ["machine", "workload", "cpus", "seed", "seeds", "set", "warmup_ms", "duration_ms", "check", "list"])]
    pub(crate) recording: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) play: RecordingArgs,
    /// Run everything twice and fail if the results differ
    #[arg(long)]
    pub(crate) check: bool,
    /// List machines, workloads and their parameters instead
    #[arg(long)]
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
  pageset stat my.pgtrace --format json | jq .cpus.remote_percent
  pageset stat data/pairs                all .pgtrace files of a folder";

/// Tell what is in a recording, without replaying it
///
/// Reads a recording once and counts: orders and migratetypes, which CPU frees whose pages, how long blocks live, bursts,
/// what the kernel itself refilled and drained, and the zones before and after.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_STAT)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub(crate) source: SourcesArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const READING_CONVERT: &str = "\
Formats read, found out by content:
  .pgtrace          this tool's own: compressed, checksummed, with an index
  trace.dat         of trace-cmd, versions 6 and 7
  perf.data         of `perf record`, but not with -z or into a pipe
  text              of ftrace (/sys/kernel/tracing/trace), `perf script` or
                    `trace-cmd report`
  Each may be packed: .gz, .zst, .xz (with the feature xz)
  --to layout reads a copy of /proc/zoneinfo too, of any kernel since 2.6.32

Formats written (--to):
  pgtrace    a fraction of the size of text, and read many times faster. All
             that is known of the recording is kept
  perfetto   for https://ui.perfetto.dev, which uploads nothing. There:
             node 0 Normal        free pages against the watermarks
             node 0 Normal CPU 1  a page set: refills, drains, count, high
             CPU 1                ticks, and arrows from where pages are
                                  allocated to where another CPU frees them:
                                  one allocation in 16 is followed
             kswapd, threads      reclaim, and waits for locks, with the holder
                                  where it is known
             replay under ...     the same load under a policy of -p
  layout     the recorded machine, to edit: more memory, other watermarks,
             sysctls. `replay --layout FILE` plays the load on that machine.
             Text does not describe a machine. Then one is made up from what
             the events show, with Linux's defaults, and a comment says so.
             A copy of /proc/zoneinfo says neither the size of a page nor
             which CPUs are local to which node: --page-size, --node-cpus

Examples:
  perf script --ns -F comm,pid,cpu,time,event,trace > trace.txt
  pageset convert trace.txt my.pgtrace
  pageset convert my.pgtrace my.pftrace --to perfetto -p 6.6,6.12
  pageset convert my.pgtrace big.toml --to layout
  pageset convert two.txt --to layout --node-cpus 0=0-1,1=2-3";

/// Write a recording in another format
///
/// Reads a recording of any known format, and writes it as this tool's own, for the Perfetto UI, or as the layout of its
/// machine.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_CONVERT)]
pub(crate) struct ConvertArgs {
    /// Recording to read; `-` is the standard input
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    /// File to write; it appears whole or not at all [default: IN's name with .pgtrace or .pftrace, here; a layout is printed]
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// What to write
    #[arg(long, value_name = "FORMAT", default_value = "pgtrace")]
    #[arg(value_parser = one_of(ConvertTo::ALL.map(|to| (to.name(), to))))]
    pub(crate) to: ConvertTo,
    /// Replace OUT if it exists
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// Policy to show beside the recorded kernel, with --to perfetto. May be repeated, or be a list with commas
    #[arg(
        short,
        long = "policy",
        value_name = "NAME|FILE",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    #[arg(value_parser = policy())]
    pub(crate) policies: Vec<&'static Policy>,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Leave out the pages that the recorder itself used, with --to pgtrace. Only files of `pageset record` tell them apart
    #[arg(long)]
    pub(crate) without_recorder: bool,
    /// Leave out the names of tasks and their control groups, which `record --names` keeps
    #[arg(long)]
    pub(crate) without_names: bool,
    #[command(flatten)]
    pub(crate) opening: OpeningArgs,
}

/// What `convert` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConvertTo {
    Pgtrace,
    Perfetto,
    Layout,
}

impl ConvertTo {
    const ALL: [Self; 3] = [Self::Pgtrace, Self::Perfetto, Self::Layout];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pgtrace => "pgtrace",
            Self::Perfetto => "perfetto",
            Self::Layout => "layout",
        }
    }
}

const READING_POLICIES: &str = "\
How to read this:
  A policy is what one kernel version decides: how many pages a refill
  fetches, when and how much a page set gives back, how its limit moves.
  Names are stable; a change in what one means is listed in the changelog.
  A policy of your own is a file: edit what --toml prints, and name the file
  where a policy is named (a name with a `/`, or that ends in `.toml`). The
  book has it in \"Try your patch before you write it\".

Examples:
  pageset policies
  pageset policies linux-6.12
  pageset policies linux-6.18 --toml > mine.toml
  pageset replay -p linux-6.18,./mine.toml my.pgtrace";

/// List the policies, or show one with all its rules and constants
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_POLICIES)]
pub(crate) struct PoliciesArgs {
    /// Policy to show in full [default: list all]
    #[arg(hide_possible_values = true, value_parser = policy())]
    pub(crate) name: Option<&'static Policy>,
    /// Print the named policy as a file to edit, which -p takes in the place of a name
    #[arg(long, requires = "name", conflicts_with = "format", help_heading = "Output")]
    pub(crate) toml: bool,
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
#[command(hide = true, after_long_help = READING_COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one for each command
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct ManArgs {
    /// Write pageset.1, pageset-replay.1 … into DIR; it is created if it is missing
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
}

/// Ends the program as for any other mistake in the command line.
pub(crate) fn exit_with_usage(problem: impl std::fmt::Display) -> ! {
    definition().error(ErrorKind::ValueValidation, problem).exit()
}

fn study() -> impl TypedValueParser<Value = &'static dyn Study> {
    one_of(STUDIES.iter().map(|study| (PossibleValue::new(study.name()).help(study.summary()), *study)))
}

#[cfg(test)]
mod tests {
    use pageset_report::Format;

    use super::*;
    use crate::options::RowsFormat;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    /// `-f` had three meanings.
    #[test]
    fn an_option_letter_means_the_same_everywhere() {
        fn collect(command: &clap::Command, letters: &mut std::collections::BTreeMap<char, String>) {
            for arg in command.get_arguments() {
                let Some(letter) = arg.get_short() else { continue };
                let name = arg.get_long().expect("an option with a letter has a name").to_owned();
                let known = letters.entry(letter).or_insert_with(|| name.clone());
                assert_eq!(*known, name, "-{letter} of {}", command.get_name());
            }
            command.get_subcommands().for_each(|command| collect(command, letters));
        }
        collect(&definition(), &mut std::collections::BTreeMap::new());
    }

    #[test]
    fn help_names_every_command_in_a_group_once() {
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let definition = definition();
        let shown = definition.get_subcommands().filter(|command| !command.is_hide_set());
        let mut shown: Vec<_> = shown.map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        shown.sort_unstable();
        assert_eq!(grouped, shown);
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
