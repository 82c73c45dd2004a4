//! Options and arguments of `pageset convert`.

use std::path::PathBuf;

use clap::ValueHint;
use pageset_core::Policy;

use crate::choice::one_of;
use crate::options::{MachineArgs, OpeningArgs};
use crate::policy_name::policy;

const READING_CONVERT: &str = "\
Formats read, recognised by their content:
  .pgtrace          this tool's own: compressed, checksummed, with an index
  trace.dat         of trace-cmd, versions 6 and 7
  perf.data         of `perf record`, but not with -z or into a pipe
  text              of ftrace (/sys/kernel/tracing/trace), `perf script` or
                    `trace-cmd report`
  Each may be compressed: .gz, .zst, .xz (with the feature xz)
  --to layout also reads a copy of /proc/zoneinfo of any kernel since 2.6.32

Formats written (--to):
  pgtrace    much smaller than text, and many times faster to read. Keeps all
             facts about the recording
  perfetto   for https://ui.perfetto.dev, which uploads nothing, and shows:
             node 0 Normal        free pages against the watermarks
             node 0 Normal CPU 1  a page set: refills, drains, count, high
             CPU 1                ticks, and arrows from the allocation of a
                                  block to its free on another CPU, for one
                                  allocation in 16
             kswapd, threads      reclaim, and waits for locks, with the holder
                                  of the lock if it is known
             replay under ...     the same load under a policy that -p names
  layout     the recorded machine, to edit: more memory, other watermarks,
             sysctls. `replay --layout FILE` plays the load on that machine.
             Text does not describe a machine, so pageset guesses one from the
             events and Linux's defaults, and adds a comment about this.
             A copy of /proc/zoneinfo contains neither the page size nor the
             CPUs of each node: add --page-size and --node-cpus

Examples:
  perf script --ns -F comm,pid,cpu,time,event,trace > trace.txt
  pageset convert trace.txt my.pgtrace
  pageset convert my.pgtrace my.pftrace --to perfetto -p 6.6,6.12
  pageset convert my.pgtrace big.toml --to layout
  pageset convert two.txt --to layout --node-cpus 0=0-1,1=2-3";

/// Write a recording in another format
///
/// Reads a recording of any known format, and writes it in this tool's own format, for the Perfetto UI, or
/// as the layout of its machine.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_CONVERT)]
pub(crate) struct ConvertArgs {
    /// Recording to read; `-` is the standard input
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    /// File to write; OUT appears only when it is complete [default: IN's name with .pgtrace or .pftrace, in
    /// this directory; a layout is printed]
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Format to write
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
    /// show which pages these are
    #[arg(long)]
    pub(crate) without_recorder: bool,
    /// Leave out the names of tasks and their control groups, which `record --names` keeps
    #[arg(long)]
    pub(crate) without_names: bool,
    #[command(flatten)]
    pub(crate) opening: OpeningArgs,
}

/// The format that `convert` writes.
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
