//! Options and arguments of `pageset reproduce`.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pageset_study::reproduce::{STUDIES, Study, named};

use crate::options::OutputArgs;
use crate::page::PageArgs;
use crate::policy_name::policy_or_ours;

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

A study of your own is a file STUDY.toml with its table as CSV and a STUDY.md
beside it. The book's page on this command has an example.

Examples:
  pageset reproduce pcp-auto-tuning --quick
  pageset reproduce my-study.toml
  pageset reproduce batch-size --svg plots -o batch-size.txt
  pageset reproduce ageing --quick -p ./mine.toml
  pageset reproduce high-order-pcp --format json | jq .tables[].spearman";

/// Run a published study again, its tables with our values beside the printed ones
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_REPRODUCE)]
pub(crate) struct ReproduceArgs {
    /// Study to run, or the file of your own: my-study.toml
    #[arg(value_name = "STUDY", value_parser = StudyParser)]
    pub(crate) study: Chosen,
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
    /// Add a row with this policy to a study that plays days (ageing). May be repeated, or be a list with commas
    #[arg(
        short,
        long = "policy",
        value_name = "NAME|FILE",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    #[arg(value_parser = policy_or_ours())]
    pub(crate) policies: Vec<String>,
    /// Play the day that FILE describes, in a study that plays days (ageing); see studies/day.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) day: Option<PathBuf>,
    /// Draw figures into DIR; it is created if it is missing
    #[arg(long, value_name = "DIR", help_heading = "Output", value_hint = ValueHint::DirPath)]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// The study that was chosen.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    /// A study that is built in.
    Named(&'static dyn Study),
    /// A file of the user.
    File(PathBuf),
}

/// Takes the names of studies, and files whose names end with `.toml`.
#[derive(Clone)]
struct StudyParser;

impl StudyParser {
    fn names() -> impl Iterator<Item = PossibleValue> {
        STUDIES.iter().map(|study| PossibleValue::new(study.name()).help(study.summary()))
    }
}

impl TypedValueParser for StudyParser {
    type Value = Chosen;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        typed: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let path = PathBuf::from(typed);
        if path.extension().is_some_and(|ending| ending == "toml") {
            return Ok(Chosen::File(path));
        }
        let name = PossibleValuesParser::new(Self::names()).parse_ref(command, argument, typed)?;
        Ok(Chosen::Named(named(&name).expect("it is one of the names")))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::names()))
    }
}
