//! Runs many simulations from one plan.
//!
//! `plan` has the format of the plan file, and `goals` has the format of the goals in a plan file. `grid`
//! makes the runs of a plan. `rows` keeps finished runs in a file, each with its key.

mod goals;
mod grid;
mod plan;
mod rows;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pageset_report::Progress;
use pageset_study::jobs::{self, Stage};
use pageset_study::key::{Keys, canonical};
pub use pageset_study::key::{key, replay_key};
use pageset_study::simulate::{RunSpec, check, simulate};

pub(crate) use goals::Goal;
pub use goals::Goals;
pub use grid::{keys, runs};
pub use plan::{FileName, Grid, LogAxis, NotAFileName, Plan, Question, Several};
use rows::RowsFile;
pub use rows::{Ending, Extent, FinishedRun, Rows};

/// The runs of a plan, and the results of finished runs.
#[derive(Debug)]
pub struct Sweep {
    /// The runs in the order of the plan, each with its key.
    runs: Vec<(String, RunSpec)>,
    rows: Rows,
}

impl Sweep {
    /// Makes a sweep of the runs of a plan. No run is finished yet.
    ///
    /// # Errors
    ///
    /// Fails if a machine, a policy file or a recording that the plan names cannot be read.
    pub fn new(plan: &Plan) -> Result<Self> {
        let mut keys = Keys::default();
        let keyed = runs(plan).into_iter().map(|spec| Ok((keys.of(&spec)?, spec)));
        Ok(Self { runs: keyed.collect::<Result<_>>()?, rows: Rows::default() })
    }

    /// Returns the number of runs in the plan.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// Returns the runs in the order of the plan, each with its key. The key is a hash of everything that
    /// decides the run's result.
    #[must_use]
    pub fn runs(&self) -> &[(String, RunSpec)] {
        &self.runs
    }

    /// Adds a finished run that another sweep has computed.
    pub fn insert(&mut self, run: FinishedRun) {
        self.rows.insert(run);
    }

    /// Simulates the runs that the file of rows does not have yet, up to `jobs` of them at once. Adds each
    /// run to the file when the run is finished, so an interruption of the sweep loses only unfinished runs.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written or is not a file of rows, if a run is impossible, or with
    /// [`Cancelled`](pageset_report::Cancelled).
    pub fn finish(&mut self, rows: &Path, jobs: usize, progress: &mut dyn Progress) -> Result<()> {
        // `finish` checks all runs before the first simulation. So a plan with an impossible run fails at
        // once and not after hours, and `finish` makes no new file for this plan.
        let is_new = !rows.exists();
        if is_new {
            self.check()?;
        }
        let mut file = RowsFile::open(rows, &mut self.rows)?;
        if !is_new {
            self.check()?;
        }
        let todo: Vec<_> = todo(&self.runs, &self.rows).collect();
        let mut stage = Stage::begin(progress, "simulating", "runs", todo.len());
        jobs::each(
            &todo,
            jobs,
            |(_, spec)| simulate(spec),
            |index, result| {
                let (key, spec) = todo[index];
                let result = result.with_context(|| name_of(spec))?;
                let run = FinishedRun::new(key.clone(), spec.clone(), &result)?;
                file.append(&run)?;
                self.rows.insert(run);
                Ok(stage.step()?)
            },
        )
    }

    /// Checks whether each unfinished run can begin.
    fn check(&self) -> Result<()> {
        todo(&self.runs, &self.rows).try_for_each(|(_, spec)| check(spec).with_context(|| name_of(spec)))
    }

    /// Returns the finished runs, in the order of the plan.
    pub fn finished(&self) -> impl Iterator<Item = &FinishedRun> {
        self.runs.iter().filter_map(|(key, _)| self.rows.get(key))
    }
}

/// Returns the runs that have no row yet.
fn todo<'a>(runs: &'a [(String, RunSpec)], rows: &Rows) -> impl Iterator<Item = &'a (String, RunSpec)> {
    runs.iter().filter(|(key, _)| rows.get(key).is_none())
}

fn name_of(spec: &RunSpec) -> String {
    format!("the run {}", canonical(spec))
}

/// Returns the default path of a plan's rows: `plan.rows.jsonl` if the plan is `plan.toml`.
#[must_use]
pub fn rows_path(plan: &Path) -> PathBuf {
    plan.with_extension("rows.jsonl")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the plans of the book and of `studies`. Regression: a plan of the book had a parameter that no
    /// workload has.
    #[test]
    fn every_plan_that_a_page_shows_can_begin() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = std::fs::read_to_string(root.join("docs/book/src/guide/sweep.md")).unwrap();
        let blocks = page.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap());
        let plans: Vec<_> = blocks.filter(|block| block.contains("[[grid]]")).collect();
        assert!(!plans.is_empty());
        let in_sources = ["batch-sizes", "latency", "review-v5"]
            .map(|name| std::fs::read_to_string(root.join(format!("studies/{name}.toml"))).unwrap());
        for text in plans.into_iter().chain(in_sources.iter().map(String::as_str)) {
            // Plans name policy files by paths from the root of the repository.
            let text = text.replace("\"studies/", &format!("\"{}/studies/", root.display()));
            let plan = Plan::parse(&text).unwrap();
            Sweep::new(&plan).unwrap().check().unwrap();
        }
    }
}
