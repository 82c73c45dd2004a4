//! Options and arguments of `pageset convert`.

use std::path::PathBuf;

use clap::ValueHint;
use pageset_core::Policy;

use crate::choice::one_of;
use crate::options::{MachineArgs, OpeningArgs};
use crate::policy_name::policy;

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
/// Reads a recording of any known format, and writes it as this tool's own, for the Perfetto UI, or as the
/// layout of its machine.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_CONVERT)]
pub(crate) struct ConvertArgs {
    /// Recording to read; `-` is the standard input
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    /// File to write; it appears whole or not at all [default: IN's name with .pgtrace or .pftrace, here; a
    /// layout is printed]
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// What to write
    #[arg(long, value_name = "FORMAT", default_value = "pgtrace")]
    #[arg(value_parser = one_of(ConvertTo::ALL.map(|to| (to.name(), to))))]
    pub(crate) to: ConvertTo,
    /// Replace OUT if it exists
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// Policy to show beside the recorded kernel, with --to perfetto. May be repeated, or be a list with
    /// commas
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
    /// Leave out the pages that the recorder itself used, with --to pgtrace. Only files of `pageset record`
    /// tell them apart
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
