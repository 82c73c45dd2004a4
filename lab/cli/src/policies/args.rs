//! Options and arguments of `pageset policies`.

use pageset_core::Policy;

use crate::options::OutputArgs;
use crate::policy_name::policy;

const READING_POLICIES: &str = "\
How to read this:
  A policy is a set of rules of the kernel: how many pages a refill fetches,
  when and how many pages a page set gives back, how the limit of a page set
  changes. Most policies have the rules of one or more kernel versions. Names
  are stable; the changelog lists changes of a policy. To make your own policy,
  edit the file that --toml prints. Then give the file's name in place of a
  policy's name. The file's name must contain a `/`, or end in `.toml`. See
  \"Try your patch before you write it\" in the book.

Examples:
  pageset policies
  pageset policies linux-6.12
  pageset policies linux-6.18 --toml > mine.toml
  pageset replay -p linux-6.18,./mine.toml my.pgtrace";

/// List the policies, or show one with all its rules and constants
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_POLICIES)]
pub(crate) struct PoliciesArgs {
    /// Policy to show in full [default: list all]
    #[arg(hide_possible_values = true, value_parser = policy())]
    pub(crate) name: Option<&'static Policy>,
    /// Print the policy as a file to edit; -p accepts such a file in place of a name
    #[arg(long, requires = "name", conflicts_with = "format", help_heading = "Output")]
    pub(crate) toml: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
