//! Options and arguments of `pageset reproduce`.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pageset_reproduce::{STUDIES, Study, named};

use crate::options::OutputArgs;
use crate::page::PageArgs;
use crate::policy_name::policy_or_ours;

const READING_REPRODUCE: &str = "\
How to read this:
  Each table is printed with the published value first, and our value beside it.
  Below each table you see how well the two agree: in the order of the rows
  (Spearman), in the direction in which each row differs from the base row, and
  in the median error. The number of right directions is compared with that of
  the null model, which forecasts that nothing ever changes, and has many
  directions right. A group of tables has no skill here if fewer than a third of
  its published changes are met, or if the directions do not beat the null model
  (sign test, p < 0.05). The last section lists the values that did not
  reproduce.

  measured   on this machine
  simulated  our allocator on a modelled machine, in virtual time
  fitted     a parameter was chosen so that this row agrees, so its agreement
             means nothing. Only base rows are fitted; the other rows
             are predictions

To add a study, write a file STUDY.toml, and beside it its table as CSV and a
STUDY.md. The book's page on this command has an example.

Examples:
  pageset reproduce pcp-auto-tuning --quick
  pageset reproduce my-study.toml
  pageset reproduce batch-size --svg plots -o batch-size.txt
  pageset reproduce ageing --quick -p ./mine.toml
  pageset reproduce high-order-pcp --format json | jq .tables[].spearman";

/// Run a published study again, and print our values beside the published ones
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_REPRODUCE)]
pub(crate) struct ReproduceArgs {
    /// Study to run: a name, or a file such as my-study.toml
    #[arg(value_name = "STUDY", value_parser = StudyParser)]
    pub(crate) study: Chosen,
    /// Make fewer and shorter runs: to try the command, not to cite results
    #[arg(long)]
    pub(crate) quick: bool,
    /// How many runs to do at the same time, which does not change the result [default: one for each CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Number of seeds to simulate each run with [default: 5; with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: Option<u64>,
    /// Choose fitted parameters again, on base rows only, and write them to FILE; takes minutes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) fit: Option<PathBuf>,
    /// Add a row with this policy to a study that simulates whole days (ageing). May be repeated, or be a
    /// list with commas
    #[arg(
        short,
        long = "policy",
        value_name = "NAME|FILE",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    #[arg(value_parser = policy_or_ours())]
    pub(crate) policies: Vec<String>,
    /// Simulate the day that FILE describes, in a study that simulates whole days (ageing); see
    /// studies/day.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) day: Option<PathBuf>,
    /// Draw figures into DIR; a missing DIR is created
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
    /// A study that is part of the program.
    Named(&'static dyn Study),
    /// A study in a file of the user.
    File(PathBuf),
}

/// Parses the name of a study, or the path of a study file, which ends with `.toml`.
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
        Ok(Chosen::Named(named(&name).expect("a bundled study has the accepted name")))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::names()))
    }
}
