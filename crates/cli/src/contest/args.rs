//! What can be typed for `pageset contest`.

use pageset_core::Policy;

use crate::args::policy;
use crate::options::{MachineArgs, OutputArgs, SourceArgs};

const READING_CONTEST: &str = "\
How to read this:
  The load is the same in every row; what differs is the allocator: Linux's
  under a policy, then ours (owned-blocks), in which CPUs own pageblocks. Each
  block that the recording allocates is allocated, and the same one is freed
  where the recording frees it, on the same CPU.

  visits              times a CPU met others: it took a zone's lock, or changed
                      what all CPUs of a zone share
  lines               of these, changes of a pageblock that another CPU had
                      changed less than 10 us before. Linux's pageblocks are
                      under the zone's lock; under pcp-buddy-rfc, lines are
                      changes of a page set, where pages of others go back
  passed              such changes, however long ago the other CPU's was
  fallbacks           requests that got memory of another type
  held                free pages that a CPU keeps back: nobody else gets them
                      until it gives them back; \"idle\" is two idle seconds
                      after the last event
  at hand             free pages that are meant for one CPU, but that others
                      take if they find none
  whole               pageblocks of 512 pages that are free as a whole, what
                      huge pages are made of: after the last event, and when
                      the load is gone. Those at hand are among them

  A contest counts, it does not time. Memory is empty at first, and the
  recorded order of events is kept. Not played: bulk allocations, whose pages a
  recording does not name, and frees of pages whose allocation it does not
  show.

Examples:
  pageset contest
  pageset contest data/traces/k618_2c_hackbench_sock.pgtrace --ablations
  pageset contest -p linux-6.1,linux-6.12 my.pgtrace --format json
  pageset layout -o big.toml; $EDITOR big.toml
  pageset contest --layout big.toml      the same load on that machine";

/// Play a trace's blocks on whole allocators: Linux's and our own, one row each
///
/// Plays every allocation and free of a trace on an allocator that has all of the machine's memory: Linux's, under each
/// policy, and one of our own that needs no lock. Counts how often CPUs meet, and what becomes of memory.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_CONTEST)]
pub(crate) struct ContestArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Policy of Linux's allocator. May be repeated, or be a list with commas
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',', hide_possible_values = true)]
    #[arg(default_value = "linux-6.12,linux-6.18,linux-6.19,pcp-buddy-rfc", value_parser = policy())]
    pub(super) policies: Vec<&'static Policy>,
    /// Add rows for ours without one of its parts each: without pages of other CPUs' pageblocks that CPUs keep
    /// (`owned-blocks-at-once`), without whole pageblocks at hand (`owned-blocks-no-spares`), without lists of
    /// half-used pageblocks that are a CPU's own (`owned-blocks-no-stacks`), without pageblocks that a CPU's orders share
    /// (`owned-blocks-no-mixed`), without pageblocks that CPUs share (`owned-blocks-no-sharing`)
    #[arg(short, long)]
    pub(super) ablations: bool,
    #[command(flatten)]
    pub(super) machine: MachineArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}
