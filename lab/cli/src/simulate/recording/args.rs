//! Options and arguments of `pageset simulate --recording`.

use crate::options::{MachineArgs, OpeningArgs};

/// How to read its result.
pub(crate) const READING: &str = "\
With --recording:
  The load is the same in every row; the allocator differs. Linux's comes first,
  under a policy, then ours, whose CPUs reserve pageblocks. In owned-blocks each
  CPU has arrays of the blocks that it freed last, in owned-blocks-straight
  none. Each block that the recording allocates is allocated, and the same block
  is freed where the recording frees it, on the same CPU.

  visits              times a CPU met others: it took a zone's lock, or changed
                      what all CPUs of a zone share
  lines               of these, changes of a pageblock that another CPU had
                      changed less than 10 us before. Linux's pageblocks are
                      under the zone's lock; under pcp-buddy-rfc, lines are
                      changes of a page set, where pages of others go back
  passed              such changes, however long ago the other CPU's was
  fallbacks           requests that got memory of another type
  held                free pages that a CPU keeps back: no other CPU gets them
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
  show.";

/// Options of `--recording` alone.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A recording")]
pub(crate) struct RecordingArgs {
    #[command(flatten)]
    pub(super) machine: MachineArgs,
    #[command(flatten)]
    pub(super) opening: OpeningArgs,
}
