//! Options and arguments of `pageset simulate --recording`.

use crate::options::{MachineArgs, OpeningArgs};

/// The help text on how to read the result.
pub(crate) const READING: &str = "\
With --recording:
  The load is the same in every row; the allocator differs. First come rows of
  Linux's allocator under a policy, then rows of our allocators, in which each
  CPU reserves pageblocks. In owned-blocks, each CPU has arrays of the blocks
  that it freed last; owned-blocks-straight has no such arrays. Each block that
  the recording allocates is allocated, and the same block is freed where the
  recording frees it, on the same CPU.

  visits              how often a CPU took a zone's lock, or changed data that
                      all CPUs of a zone share
  lines               the part of the visits that changed a pageblock which
                      another CPU had changed less than 10 us before. In Linux,
                      the zone's lock protects pageblocks. In pcp-buddy-rfc,
                      lines are changes of page sets, to which other CPUs give
                      pages back
  passed              changes of a pageblock, or page set, that another CPU had
                      changed last, at any time before
  fallbacks           requests that got memory of another type
  held                free pages that no other CPU can use until the CPU that
                      holds them gives them back; \"idle\" is two idle seconds
                      after the last event
  at hand             free pages that are meant for one CPU, but that other CPUs
                      take if they find no other pages
  whole               pageblocks of 512 pages that are completely free, so that
                      a huge page fits: after the last event, and when all pages
                      of the load are freed. Pageblocks at hand are included

  A contest counts; it does not measure time. Memory is empty at first, and the
  recorded order of events is kept. Two things are not played: bulk allocations,
  because a recording does not name their pages, and frees of pages whose
  allocation the recording does not show.";

/// Options of `--recording` alone.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A recording")]
pub(crate) struct RecordingArgs {
    #[command(flatten)]
    pub(super) machine: MachineArgs,
    #[command(flatten)]
    pub(super) opening: OpeningArgs,
}
