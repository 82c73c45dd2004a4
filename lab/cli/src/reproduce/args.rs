//! Options and arguments of `pageset reproduce`.

use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::{PossibleValue, TypedValueParser};
use pageset_study::reproduce::{STUDIES, Study};

use crate::choice::one_of;
use crate::options::OutputArgs;
use crate::page::PageArgs;

const READING_REPRODUCE: &str = "\
How to read this:
  Each table is printed with the published value first and ours beside it.
  Below it stands how well they agree: the order of the rows (Spearman), the
  direction in which each row differs from the base row, the median error.
  Directions stand beside the null model: \"nothing ever changes\" has many of
  them right. A group of tables has no skill here if fewer than a third of its
  published changes are met, or if the null model is not beaten (sign test, p <
  0.05). The last section lists what did not reproduce.

  measured   on this machine
  simulated  our allocator on a modelled machine, in virtual time
  fitted     used to choose a parameter: agreement there means nothing. Only
             base rows are used so; all other rows are predictions

Examples:
  pageset reproduce pcp-auto-tuning --quick
  pageset reproduce batch-size --svg plots -o batch-size.txt
  pageset reproduce high-order-pcp --format json | jq .tables[].spearman";

/// Run a published study again, its tables with our values beside the printed ones
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_REPRODUCE)]
pub(crate) struct ReproduceArgs {
    /// Study to run
    #[arg(value_name = "STUDY", value_parser = study())]
    pub(crate) study: &'static dyn Study,
    /// Fewer and shorter runs: to see whether it works, not to cite
    #[arg(long)]
    pub(crate) quick: bool,
    /// How many runs to do at once; the result is the same [default: one for each CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// With how many seeds to simulate each run [default: 5; with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: Option<u64>,
    /// Choose fitted parameters again, on base rows only, and write them to FILE; takes minutes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) fit: Option<PathBuf>,
    /// Draw figures into DIR; it is created if it is missing
    #[arg(long, value_name = "DIR", help_heading = "Output", value_hint = ValueHint::DirPath)]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

fn study() -> impl TypedValueParser<Value = &'static dyn Study> {
    one_of(STUDIES.iter().map(|study| (PossibleValue::new(study.name()).help(study.summary()), *study)))
}
