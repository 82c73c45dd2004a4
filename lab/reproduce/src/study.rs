//! The interface of a study, its options and its findings.

use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use pageset_report::comparison::Comparison;
use pageset_report::plot::Figure;
use pageset_report::{Seeds, Table};
use serde::{Deserialize, Serialize};

use pageset_report::Progress;

/// A study: simulations or measurements that a user can run with one command.
///
/// Most simulated studies are [`StudyFile`](super::StudyFile)s. To add a `StudyFile`, add its TOML file, its
/// CSV files and its notes to a folder of `data/tables`.
pub trait Study: fmt::Debug + Send + Sync {
    /// The study's name on the command line, in lower case, with `-` between words.
    fn name(&self) -> &str;

    /// A description of the study in one line.
    fn summary(&self) -> &str;

    /// Returns the file names of the figures that the study draws, without extension.
    fn figures(&self) -> Vec<&str> {
        vec![self.name()]
    }

    /// Whether the study has fitted parameters. The option `--fit` chooses them again.
    fn has_parameters(&self) -> bool {
        false
    }

    /// Whether the study's runs are simulated with [seeds](Options::seeds).
    fn has_seeds(&self) -> bool {
        true
    }

    /// Whether the study simulates a day of work. If the study simulates a day, the user may add
    /// [policies](Options::policies) and may describe [another day](Options::day).
    fn plays_days(&self) -> bool {
        false
    }

    /// Runs the study. Equal options give equal findings, except measurements of this machine. The option
    /// `jobs` changes only the time that the study takes.
    ///
    /// # Errors
    ///
    /// Fails, for example, if the file of [`Options::fit`] cannot be written, if the system gives no threads
    /// or memory, or with [`Cancelled`](pageset_report::Cancelled). If a simulation of a study file fails,
    /// the study does not fail, and the findings name the simulation.
    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings>;
}

/// Options of a study.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Options {
    /// Whether to run only some rows, with one seed by default, to see whether the study runs without errors.
    /// A quick run measures each row for the same time as a full run, except in three studies. In a quick
    /// run, `owned-blocks` has other runs, `ageing` has a shorter day, and `huge-copy` measures three times
    /// instead of nine times.
    pub is_quick: bool,
    /// Largest number of runs at one time.
    pub jobs: usize,
    /// A file for fitted parameters. If the option `fit` is set, the study chooses its parameters again
    /// before it simulates its rows, and writes the parameters to this file.
    pub fit: Option<PathBuf>,
    /// Number of seeds for each simulation. Default: five seeds, or one seed in a quick run.
    pub seeds: Option<u64>,
    /// Further policies for a study that simulates days: names of policies, or paths of policy files.
    #[serde(default)]
    pub policies: Vec<String>,
    /// A file with the parameters of another day, for a study that simulates days.
    #[serde(default)]
    pub day: Option<PathBuf>,
}

/// The text that a quick run shows in place of the reasons for its findings.
const REASONS_ELSEWHERE: &str = "This was a quick run. The report of the full run gives the reasons.";

/// Number of seeds in a full run of a study. Guess: five seeds are enough to see how much a result varies.
const SEEDS: u64 = 5;

impl Options {
    /// Returns the seeds of each simulation.
    #[must_use]
    pub fn seeds(&self) -> Seeds {
        Seeds { first: 1, count: self.seeds.unwrap_or(if self.is_quick { 1 } else { SEEDS }) }
    }

    /// Returns the reasons that a study gives for its findings. The reasons are about the full run, so a
    /// quick run only says where the reasons are.
    #[must_use]
    pub fn reasons(&self, reasons: &[impl AsRef<str>]) -> Vec<String> {
        if self.is_quick {
            return vec![REASONS_ELSEWHERE.to_owned()];
        }
        reasons.iter().map(|reason| reason.as_ref().to_owned()).collect()
    }
}

/// The findings of a study.
#[derive(Debug, Default)]
pub struct Findings {
    /// Published tables with our values.
    pub tables: Vec<Comparison>,
    /// The study's tables without published values.
    pub more: Vec<Table>,
    /// The state of memory over time, if the study simulates days.
    pub timeline: Option<Table>,
    /// Figures, each with its file name without extension.
    pub figures: Vec<(String, Figure)>,
    /// Notes that a reader of the tables needs, for example on how our values were made.
    pub notes: Vec<String>,
    /// Sentences that give the reasons why rows differ from the published values, as far as the reasons are
    /// known.
    pub explanations: Vec<String>,
    /// The machine or machines of the runs, in one line.
    pub machine: String,
    /// The policies that the study compares.
    pub policies: Vec<String>,
    /// Seeds of random numbers, if the study used random numbers.
    pub seeds: Option<Seeds>,
}
