//! What a study is, how it is run, and what comes out.

use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use pageset_report::comparison::Comparison;
use pageset_report::plot::Figure;
use pageset_report::{Seeds, Table};
use serde::{Deserialize, Serialize};

use pageset_report::Progress;

/// A published study that can be run again.
///
/// To add one: a file beside this one, a line in [`STUDIES`](super::STUDIES), a page in the book.
pub trait Study: fmt::Debug + Sync {
    /// As typed: lower case, words joined by `-`.
    fn name(&self) -> &'static str;

    /// What is compared, on one line of help.
    fn summary(&self) -> &'static str;

    /// Names of the figures that it draws, those of their files without ending.
    fn figures(&self) -> Vec<&'static str> {
        vec![self.name()]
    }

    /// Whether some parameters were chosen on base rows and are kept in a file: `--fit` chooses them again.
    fn has_parameters(&self) -> bool {
        false
    }

    /// Whether its runs are simulated with [seeds](Options::seeds).
    fn has_seeds(&self) -> bool {
        true
    }

    /// Runs it. The same options give the same findings, except for what is measured; `jobs` changes only the time.
    ///
    /// # Errors
    ///
    /// The file of [`Options::fit`] cannot be written, or the system gives no threads or memory;
    /// [`Cancelled`](pageset_report::Cancelled). A simulation that fails is told in the findings instead.
    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings>;
}

/// How a study is run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// Fewer rows and one seed: enough to see whether it works. A row is measured for as long as ever, but for those of
    /// `owned-blocks`, of which none is fitted.
    pub is_quick: bool,
    /// Runs that go on at once.
    pub jobs: usize,
    /// Where parameters are written that are chosen again before the study runs.
    pub fit: Option<PathBuf>,
    /// With how many seeds each simulation is run. Default: five, of a quick run one.
    pub seeds: Option<u64>,
}

/// Instead of a study's reasons, in a quick run.
const REASONS_ELSEWHERE: &str =
    "This was a quick run. Reasons are known of the full one, and stand in its report.";

/// Seeds of a whole study. Guess: enough to see how much a result varies.
const SEEDS: u64 = 5;

impl Options {
    /// The seeds with which each simulation is run.
    #[must_use]
    pub fn seeds(&self) -> Seeds {
        Seeds { first: 1, count: self.seeds.unwrap_or(if self.is_quick { 1 } else { SEEDS }) }
    }

    /// The reasons that a study gives for what it found. They speak of the full run: a quick one says where they are instead.
    #[must_use]
    pub fn reasons(&self, reasons: &[&str]) -> Vec<String> {
        if self.is_quick {
            return vec![REASONS_ELSEWHERE.to_owned()];
        }
        reasons.iter().map(|&reason| reason.to_owned()).collect()
    }
}

/// What came out.
#[derive(Debug, Default)]
pub struct Findings {
    /// Published tables with our values.
    pub tables: Vec<Comparison>,
    /// Tables of our own that belong to the study.
    pub more: Vec<Table>,
    /// What became of it over time, if that is part of the result.
    pub timeline: Option<Table>,
    /// Pictures, with the names of their files without ending.
    pub figures: Vec<(String, Figure)>,
    /// What the reader must know to read the tables: how our values were obtained, what stands for what.
    pub notes: Vec<String>,
    /// Why rows differ, as far as we can tell. Which rows differ is found from the tables.
    pub explanations: Vec<String>,
    /// The machine or machines on one line.
    pub machine: String,
    /// Policies compared.
    pub policies: Vec<String>,
    /// Seeds of everything random, if anything was.
    pub seeds: Option<Seeds>,
}
