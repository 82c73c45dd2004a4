//! Options and arguments of `pageset sweep`.

use std::path::PathBuf;

use clap::ValueHint;

use super::elsewhere::Engine;
use crate::options::RowsOutputArgs;
use crate::page::PageArgs;

const READING_SWEEP: &str = "\
The plan:
  title = \"Batch sizes on two machines\"

  [[grid]]                     # every combination is run
  machine = [\"haswell-desktop\", \"epyc-2\"]
  workload = \"page_fault1\"
  policy = \"linux-4.19\"
  batch = [31, 63, 127]        # also: cpus, high, seed, warmup_ms
  duration_ms = 40
  set = { fault_ns = [500, 1000] }  # parameters of the workload

  [[question]]                 # one figure: --svg DIR draws DIR/batch.svg
  title = \"Where do CPUs wait?\"
  file = \"batch\"
  x = \"batch\"
  y = [\"zone_lock_percent\", \"lru_lock_percent\"]
  series = \"machine\"

  `pageset simulate --list` names machines, workloads and their parameters. If
  one run of the plan is not possible, the sweep does not begin.

How a sweep continues:
  pageset adds each finished run at once to PLAN.rows.jsonl, beside the plan. A
  stopped sweep continues where it stopped; a complete sweep is only printed. A
  run is not done again if its row has the same parameters, machine, recording
  and sources of the simulator. pageset does not change a file that has other
  lines than rows.

Several computers, or processes:
  pip install pageset                      needed: Python starts the runs
  pageset sweep plan.toml --on dask://HOST:8786
  pageset sweep plan.toml --on slurm
  Each finished run is a Parquet file in PLAN.results/. The file's name depends
  on all parameters of the run. A stopped sweep continues where it stopped.";

/// Run many simulations from one plan: every combination of machines, workloads, policies and settings
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_SWEEP)]
pub(crate) struct SweepArgs {
    /// Plan of the sweep, a TOML file
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    pub(crate) plan: PathBuf,
    /// How many runs to do at the same time, which does not change the result [default: one for each CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Where to run: on a Dask cluster (dask://HOST:PORT), as an array of Slurm jobs (slurm), or in several
    /// processes (processes). Needs the Python package
    #[arg(long, value_name = "ENGINE", conflicts_with = "rows")]
    pub(crate) on: Option<Engine>,
    /// Directory of finished runs, with one Parquet file each [default: the plan's name with .results]
    #[arg(long, value_name = "DIR", requires = "on", value_hint = ValueHint::DirPath)]
    pub(crate) into: Option<PathBuf>,
    /// File of finished runs [default: the plan's name with .rows.jsonl]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) rows: Option<PathBuf>,
    /// Draw a figure for each question of the plan into DIR; a missing DIR is created
    #[arg(long, value_name = "DIR", help_heading = "Output", value_hint = ValueHint::DirPath)]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: RowsOutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}
