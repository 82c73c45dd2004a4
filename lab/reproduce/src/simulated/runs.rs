//! Simulates the runs of all experiments. Equal runs are simulated only once.

use std::collections::HashMap;

use anyhow::Result;
use pageset_report::Progress;
use pageset_report::Seeds;
use pageset_study::jobs::{self, Stage};
use pageset_study::simulate::{RunResult, RunSpec, simulate};

use super::experiment::Experiment;

/// The results of all runs. The key of a result is its run, written as a line of JSON.
#[derive(Debug)]
pub(super) struct Results {
    by_run: HashMap<String, Result<RunResult, String>>,
    seeds: Seeds,
}

impl Results {
    /// Simulates one run with each of the seeds.
    pub(super) fn of(run: &RunSpec, seeds: Seeds) -> Self {
        Self { by_run: seeded(run, seeds).map(|run| (line(&run), result_of(&run))).collect(), seeds }
    }

    /// Returns the results of a run, one for each seed. Returns `None` if the run failed with at least one of
    /// the seeds.
    pub(super) fn get(&self, run: &RunSpec) -> Option<Vec<&RunResult>> {
        seeded(run, self.seeds).map(|run| self.by_run.get(&line(&run))?.as_ref().ok()).collect()
    }

    /// Returns a sentence for each run that failed, in alphabetical order.
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

/// Simulates all runs that the experiments need, with each of the seeds.
pub(super) fn all(
    experiments: &[Experiment],
    seeds: Seeds,
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

/// Makes a run for each of the seeds.
fn seeded(run: &RunSpec, seeds: Seeds) -> impl Iterator<Item = RunSpec> {
    seeds.iter().map(|seed| RunSpec { seed, ..run.clone() })
}

/// Simulates one run. Returns the result of the run, or the error as text.
fn result_of(run: &RunSpec) -> Result<RunResult, String> {
    simulate(run).map_err(|error| format!("{error:#}"))
}

fn line(run: &RunSpec) -> String {
    serde_json::to_string(run).expect("a run has only text and numbers")
}
