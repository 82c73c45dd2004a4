//! Options and arguments of `pageset simulate`.

use std::path::PathBuf;

use clap::ValueHint;

use super::recording::args::{READING, RecordingArgs};
use crate::options::OutputArgs;
use crate::page::PageArgs;
use crate::policy_name::policy_or_ours;

const READING_SIMULATE: &str = "\
How to read this:
  score             units of work per second, all CPUs together
  zone lock         share of the CPUs' busy time in which they waited for a
                    zone's lock or held it (\"zone lock%\" of the 2023 series)
  LRU lock          the same for the lock of the LRU lists: CPUs that no longer
                    wait for the zone lock often wait for this lock
  free_high         drains that high-order frees caused
  alloc_zone        pages that page sets fetched from zones
  PCP pages, peak   most pages in all page sets at once
  PCP pages, idle   pages in page sets after 30 idle seconds
  alloc p50, p99    half, or 99 %, of the allocations take no longer than this
  behind drains     how long the average allocation waited while another CPU
                    gave pages back: the cost of bulk frees to other CPUs
  digest            two runs with the same seed, machine and commit must have
                    the same digest

  With owned-blocks and owned-blocks-straight, which have no page sets and no
  locks, there are also:
  visits            times a CPU took a zone's lock, or changed what all CPUs of
                    a zone share, or a pageblock that another CPU had changed
                    less than 10 us before, as with --recording
  lines             share of the CPUs' busy time in which they waited for cache
                    lines of the allocator from other CPUs
  held, mean        free pages that CPUs kept back from all others
  whole, end        pageblocks whose pages are all free at the end

  Every figure is simulated. Compare rows of one machine, not machines. The
  machine file says which costs are measured and which are guessed.
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
/// Runs the allocator on virtual CPUs in virtual time. CPUs wait for locks and for cache lines, and work
/// takes as long as the machine file says. The simulation shows a policy's effect on a machine that you do
/// not have.
#[derive(Debug, clap::Args)]
#[command(after_long_help = [READING_SIMULATE, READING, "", SIMULATE_EXAMPLES].join("\n"))]
pub(crate) struct SimulateArgs {
    /// Bundled machine, or a machine file
    #[arg(short, long, value_name = "MACHINE", default_value = "epyc-2", value_hint = ValueHint::FilePath)]
    pub(crate) machine: String,
    /// Workload to run; with trace:FILE, each CPU plays the events of one recorded CPU
    #[arg(short, long, value_name = "NAME", default_value = "page_fault1")]
    pub(crate) workload: String,
    /// Run the workload on the first N CPUs [default: all]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpus: Option<u32>,
    /// Policy to run under; the first is the base, and its kernel decides how sockets and slabs are simulated
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
    /// Run each policy with N seeds, from --seed on: the table then has means and standard deviations
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: u64,
    /// Set a parameter of the workload, or of the kernel: vm.percpu_pagelist_high_fraction,
    /// vm.min_free_kbytes, vm.watermark_scale_factor, vm.stat_interval; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, u64)>,
    /// Virtual time before measuring begins [default: the workload's]
    #[arg(long, value_name = "MS")]
    pub(crate) warmup_ms: Option<u64>,
    /// Virtual time that is measured [default: the workload's]
    #[arg(long, value_name = "MS")]
    pub(crate) duration_ms: Option<u64>,
    /// How many runs to do at the same time, which does not change the result [default: one for each CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Instead of a workload, play a recording on complete allocators, and count how often CPUs change shared
    /// data; without FILE, play the bundled recording
    #[arg(long, value_name = "FILE", num_args = 0..=1, value_hint = ValueHint::FilePath, help_heading = "A recording")]
    #[arg(conflicts_with_all = ["machine", "workload", "cpus", "seed", "seeds", "set", "warmup_ms", "duration_ms", "check", "list"])]
    pub(crate) recording: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) play: RecordingArgs,
    /// Run everything twice and fail if the results differ
    #[arg(long)]
    pub(crate) check: bool,
    /// Only list machines, workloads and their parameters
    #[arg(long)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// A parameter `KEY=VALUE` of a workload, as the user typed it.
fn setting(text: &str) -> Result<(String, u64), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, e.g. fault_ns=800")?;
    let value = value.parse().map_err(|_| format!("`{value}` is not a whole number"))?;
    Ok((key.to_owned(), value))
}
