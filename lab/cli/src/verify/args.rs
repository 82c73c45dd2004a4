//! Options and arguments of `pageset verify`.

use std::path::PathBuf;

use clap::ValueHint;
use pageset_replay::{Class, Mode, VmSettings};

use crate::choice::one_of;
use crate::options::{MachineArgs, OpeningArgs, OutputArgs};
use crate::page::PageArgs;
use crate::policy_name::{AUTO, AutoOr, policy_or_auto};

const READING_VERIFY: &str = "\
How to read this:
  refills, exact    fetches of pages from the zone: how many the recorded kernel
                    made, and how many of them the policy makes at the same
                    moment and of the same size
  drains, exact     the same for drains after frees
  same pages        of the pages that the kernel drained, how many the policy
                    drains at the same place of the same drain; only lists whose
                    contents are known are counted
  ticks             ticks at which kernel and policy drain the same pages
  count, high       page sets whose values in /proc/zoneinfo equal the policy's
  differ            decisions that differ; the line below the table has the
                    known reasons, and the number of differences without one

Modes:
  step    the policy predicts each decision, then the kernel's decision is
          carried out; samples of /proc/zoneinfo correct count and high
  blind   as step, but samples correct nothing: values are only compared
  free    the policy's own decisions are carried out, so errors add up

Against another kernel or setting:
  --against names recordings of the same load under another kernel or setting.
  The recordings before --against are replayed under that kernel and setting.
  This forecast is compared with the recordings of --against. Single decisions
  are not compared.
  was, is, predicted  means over the runs
  noise               how much the recordings of --against differ from each
                      other
  last columns        how many of the recordings of --against are in the
                      interval of the forecast

Examples:
  pageset verify data/traces/*.pgtrace
  pageset verify k61_2c_tcp.pgtrace --against k612_2c_tcp.pgtrace
  pageset verify my.pgtrace --mode free --policy linux-6.7
  pageset verify my.pgtrace --explain 1 --class hidden-at-start";

/// Compare each decision of the recorded kernel with a policy's decision
///
/// Plays the recorded allocations and frees on the core's page sets, and compares every refill, drain, tick
/// and sample with the kernel's own events. With --against, checks forecasts for another kernel or setting.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_VERIFY)]
pub(crate) struct VerifyArgs {
    /// Recordings to verify, of any known format [default: the bundled one]
    #[arg(value_name = "RECORDING", value_hint = ValueHint::FilePath)]
    pub(crate) traces: Vec<PathBuf>,
    /// Policy to compare with the kernel; `auto` is the recorded kernel's own
    #[arg(short, long, value_name = "NAME", default_value = AUTO, hide_possible_values = true)]
    #[arg(value_parser = policy_or_auto())]
    pub(crate) policy: AutoOr,
    /// How much the kernel's events correct the simulated page sets
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
    /// Simulate a setting that the recorded machine did not have: vm.percpu_pagelist_high_fraction,
    /// vm.min_free_kbytes, vm.watermark_scale_factor or vm.stat_interval. May be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<VmSettings>,
    /// Instead, check forecasts with these recordings of the same load under another kernel or setting.
    /// Several recordings are repeats of the load
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
