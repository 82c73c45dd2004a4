//! What can be typed after `pageset sweep`.

use std::path::PathBuf;

use clap::ValueHint;
use pageset_lab::sweep::Shard;

use crate::options::OutputArgs;
use crate::page::PageArgs;

const READING_SWEEP: &str = "\
The plan:
  title = \"Batch sizes on two machines\"

  [[grid]]                     # every combination is run
  machine = [\"skylake-ex\", \"haswell-ep\"]
  workload = \"page_fault1\"
  policy = \"linux-4.19\"
  batch = [31, 63, 127]        # also: cpus, high, seed, duration_ms
  set = { think_ns = [0, 500] }  # parameters of the workload

  [[question]]                 # one figure: --svg DIR draws DIR/batch.svg
  title = \"Where do CPUs wait?\"
  file = \"batch\"
  x = \"batch\"
  y = [\"zone_lock_percent\", \"lru_lock_percent\"]
  series = \"machine\"

How it goes on:
  Each finished run is added at once to PLAN.rows.jsonl, beside the plan. A
  sweep that was ended goes on where it was; one that is complete only prints.
  A row counts as finished if run, machine, recording and the simulator's
  sources are the same. Rows are added only to files of rows.

Several computers:
  pageset sweep plan.toml --shard 1/4      on the first, and so on
  pageset sweep plan.toml --merge plan.1-of-4.rows.jsonl \\
      plan.2-of-4.rows.jsonl plan.3-of-4.rows.jsonl plan.4-of-4.rows.jsonl";

/// Run many simulations from one plan: every combination of machines, workloads, policies and settings
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_SWEEP)]
pub(crate) struct SweepArgs {
    /// Plan of the sweep, a TOML file
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    pub(crate) plan: PathBuf,
    /// Runs at once; changes the time, not the result [default: one for each CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Run only the I-th of N parts
    #[arg(long, value_name = "I/N", conflicts_with = "merge")]
    pub(crate) shard: Option<Shard>,
    /// Run nothing; take the rows of all parts from these files
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["rows", "jobs"])]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) merge: Vec<PathBuf>,
    /// File of finished runs [default: the plan's name with .rows.jsonl]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) rows: Option<PathBuf>,
    /// Draw the plan's questions into DIR, which is made if it is missing
    #[arg(long, value_name = "DIR", help_heading = "Output", value_hint = ValueHint::DirPath)]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}
