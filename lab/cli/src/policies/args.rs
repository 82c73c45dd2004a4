//! Options and arguments of `pageset policies`.

use pageset_core::Policy;

use crate::options::OutputArgs;
use crate::policy_name::policy;

const READING_POLICIES: &str = "\
How to read this:
  A policy is the rules of one kernel version: how many pages a refill
  fetches, when and how much a page set gives back, how its limit moves.
  Names are stable; the changelog lists changes of a policy.
  A policy of your own is a file: edit what --toml prints, and name the file
  where a policy is named (a name with a `/`, or that ends in `.toml`). The
  book has it in \"Try your patch before you write it\".

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
    /// Print the named policy as a file to edit, which -p takes in the place of a name
    #[arg(long, requires = "name", conflicts_with = "format", help_heading = "Output")]
    pub(crate) toml: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
