//! Options and arguments of `pageset record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use pageset_measure::visit_cost;
use pageset_record::{Condition, CpuList, Options, Timing};

use crate::units::{bytes, time};

const READING_RECORD: &str = "\
How it works:
  The kernel writes its page events into a buffer for each CPU, in a separate
  tracing instance, so other users of tracing are not disturbed. The recorder
  copies the events to FILE while it runs, but never the contents of memory. If
  a recorder is killed, its file can be read with --recover, and the next
  recorder removes the tracing instance.

The file also has:
  zones, free lists and counters before and after; the page sets of each CPU,
  fifty times a second; CPUs, caches, nodes and settings; how many events were
  lost, and where; what could not be recorded, and why. FILE has no names of
  tasks, except in the recorded command line. With --names, FILE has the names
  of all tasks and their control groups: look at these names before you send
  FILE to others.

Privileges:
  Only root may use the kernel's tracing files. --check says what is missing,
  and how to get it.

Examples:
  sudo pageset record -- make -j4        while a command runs
  sudo pageset record --for 10s -o my.pgtrace
  sudo pageset record                    until Ctrl-C
  sudo pageset record --flight-recorder --buffer 64M
                                         the last events before Ctrl-C
  sudo pageset record --when 'zone_wait_us > 500'
                                         the last events before a long wait
  sudo pageset record --names -- make -j4
                                         with names of tasks, for `stat`
  sudo pageset record --counts --for 10s
                                         count events, which costs little
  pageset replay my.pgtrace";

/// Record what this machine's kernel allocates and frees
///
/// Records until COMMAND ends, TIME is over, the condition of --when is met, or you press Ctrl-C, whichever
/// is first.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_RECORD)]
pub(crate) struct RecordArgs {
    /// File to write [default: recording.pgtrace]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Record all CPUs, which is also the default
    #[arg(short, long, conflicts_with = "cpus")]
    all: bool,
    /// Record only these CPUs, such as 0-3,8. Allocations and frees of other CPUs are missing
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuList>,
    /// How long to record: 500ms, 10s, 5m, 1h
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
    /// Size of the kernel's buffer for each CPU, such as 64M [default: 16M, or less if there is little
    /// memory]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    buffer: Option<u64>,
    /// Record page faults from user mode too
    #[arg(long)]
    faults: bool,
    /// Keep only the latest events that fit into the buffers, and write them at the end
    #[arg(long)]
    flight_recorder: bool,
    /// Record call chains, which show why a CPU waited for a spin lock: for a refill, a drain, or a request
    /// past the page set
    #[arg(long)]
    stack: bool,
    /// Keep names of tasks and their control groups in FILE, to see the load of each. Without --names, FILE
    /// has no name of a task
    #[arg(long)]
    names: bool,
    /// Keep the latest events, and stop when this condition is met: 'zone_wait_us > 500', 'spin_wait_us >
    /// 500' or 'reclaim_us > 10000'
    #[arg(long, value_name = "CONDITION")]
    when: Option<Condition>,
    /// Count events in the kernel instead of recording each event. Counting costs little, and is enough for
    /// `stat` and for the verdict of `advise`. Frequent events are counted only part of the time, so their
    /// number is an estimate
    #[arg(long, conflicts_with_all = ["buffer", "faults", "flight_recorder", "stack", "when", "check"])]
    pub(crate) counts: bool,
    /// First measure how much recording slows COMMAND down, in N pairs of runs without and with a recorder.
    /// Print this slowdown, and keep it in FILE
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "5", require_equals = true,
        value_parser = clap::value_parser!(u32).range(1..=1000), requires = "command")]
    pub(crate) calibrate_cost: Option<u32>,
    /// Only check whether this machine can be recorded, and say what is missing
    #[arg(long, conflicts_with_all = ["output", "force", "command"])]
    pub(crate) check: bool,
    /// Command to record, with its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

impl RecordArgs {
    pub(crate) fn options(&self) -> Options {
        Options {
            cpus: self.cpus.clone(),
            buffer_bytes: self.buffer,
            duration: self.duration,
            command: self.command.clone(),
            with_faults: self.faults,
            with_call_chains: self.stack,
            until: self.when,
            with_names: self.names,
            only_counts: self.counts,
            cost: None,
            visit_cost: visit_cost::kept(),
            reading: if self.flight_recorder || self.when.is_some() {
                Timing::AtTheEnd
            } else {
                Timing::AllTheTime
            },
        }
    }
}
