//! Options and arguments of `pageset stat`.

use crate::options::{RowsOutputArgs, SourcesArgs};

const READING_STAT: &str = "\
How to read this:
  remote frees  blocks freed by a CPU that did not allocate them: the freeing
                CPU's page set grows, and the allocating CPU's page set must
                be refilled
  unmatched     frees of blocks whose allocation is not in the recording
  lifetimes     page sets can reuse blocks that live for a short time. If
                blocks live longer, most of them go through the zone
  runs          how many pages a CPU allocates before it frees, or the
                reverse: a run that is longer than the page set's contents
                takes the zone lock
  moved between zones and page sets
                the kernel's own numbers. A replay under this kernel's policy
                should nearly reach these numbers. The kernel records single
                blocks: a refill or drain is a series of blocks on one CPU,
                without another event in between

  A `-` stands for a number that was not recorded (see the events by kind), or
  that does not apply.

Examples:
  pageset stat
  pageset stat my.pgtrace --format json | jq .cpus.remote_percent
  pageset stat data/pairs                all .pgtrace files of a folder";

/// Show the contents of a recording, without replaying it
///
/// Reads a recording once, and counts orders and migratetypes, frees of other CPUs' pages, lifetimes of
/// blocks, bursts, and the kernel's own refills and drains. Also shows the zones before and after.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_STAT)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub(crate) source: SourcesArgs,
    #[command(flatten)]
    pub(crate) output: RowsOutputArgs,
}
