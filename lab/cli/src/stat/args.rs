//! Options and arguments of `pageset stat`.

use crate::options::{OutputArgs, SourcesArgs};

const READING_STAT: &str = "\
How to read this:
  remote frees  blocks freed by another CPU than the one that allocated them:
                they pile up in one page set while the other is refilled
  unmatched     frees of blocks whose allocation is not in the recording
  lifetimes     blocks that live short come back to the page set they are
                from; a load whose blocks live long goes through the zone
  runs          how much a CPU allocates before it frees: a run longer than
                the page set's contents takes the zone lock
  moved between zones and page sets
                a replay under the recorded kernel's own policy should come
                near. Refills and drains are grouped from single events:
                those of one CPU without another event between

  What stays 0 may not have been recorded: see the events by kind.

Examples:
  pageset stat
  pageset stat my.pgtrace --format json | jq .cpus.remote_percent
  pageset stat data/pairs                all .pgtrace files of a folder";

/// Show the contents of a recording, without replaying it
///
/// Reads a recording once and counts: orders and migratetypes, frees of other CPUs' pages, lifetimes of
/// blocks, bursts, the kernel's own refills and drains, and the zones before and after.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_STAT)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub(crate) source: SourcesArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
