//! The runs of all experiments, each different one once.

use std::collections::HashMap;

use anyhow::Result;

use super::experiment::Experiment;
use crate::Progress;
use crate::jobs::{self, Stage};
use crate::simulate::{RunResult, RunSpec, simulate};

/// Results by the run's line of JSON.
#[derive(Debug)]
pub(super) struct Results {
    by_run: HashMap<String, Result<RunResult, String>>,
    seeds: u64,
}

impl Results {
    /// Simulates one run.
    pub(super) fn of(run: &RunSpec) -> Self {
        Self { by_run: HashMap::from([(line(run), result_of(run))]), seeds: 1 }
    }

    /// The results of a run, one for each seed; `None` if one failed.
    pub(super) fn get(&self, run: &RunSpec) -> Option<Vec<&RunResult>> {
        seeded(run, self.seeds).map(|run| self.by_run.get(&line(&run))?.as_ref().ok()).collect()
    }

    /// Runs that failed, in an order that is always the same.
    pub(super) fn failures(&self) -> Vec<String> {
        let failed = self.by_run.iter().filter_map(|(run, result)| {
            let error = result.as_ref().err()?;
            Some(format!("The run {run} failed: {error}."))
        });
        let mut failed: Vec<_> = failed.collect();
        failed.sort();
        failed
    }
}

/// Simulates everything that the experiments need, with so many seeds.
pub(super) fn all(
    experiments: &[Experiment],
    seeds: u64,
    jobs: usize,
    progress: &mut dyn Progress,
) -> Result<Results> {
    let mut runs: Vec<RunSpec> = Vec::new();
    let mut results = Results { by_run: HashMap::new(), seeds };
    let cases = experiments.iter().flat_map(|experiment| &experiment.cases);
    for run in cases.flat_map(|case| seeded(&case.run, seeds)) {
        if results.by_run.insert(line(&run), Err("was not done".to_owned())).is_none() {
            runs.push(run);
        }
    }
    let mut stage = Stage::begin(progress, "simulating", "runs", runs.len());
    jobs::each(&runs, jobs, result_of, |index, result| {
        results.by_run.insert(line(&runs[index]), result);
        Ok(stage.step()?)
    })?;
    Ok(results)
}

/// A run with so many seeds, from its own on.
fn seeded(run: &RunSpec, seeds: u64) -> impl Iterator<Item = RunSpec> {
    (run.seed..run.seed.saturating_add(seeds)).map(|seed| RunSpec { seed, ..run.clone() })
}

/// The result of one run, or what went wrong.
fn result_of(run: &RunSpec) -> Result<RunResult, String> {
    simulate(run).map_err(|error| format!("{error:#}"))
}

fn line(run: &RunSpec) -> String {
    serde_json::to_string(run).expect("a run has only text and numbers")
}
