//! The runs of all experiments, each different one once.

use std::collections::HashMap;

use anyhow::Result;

use super::experiment::Experiment;
use crate::Progress;
use crate::jobs::{self, Stage};
use crate::simulate::{RunResult, RunSpec, simulate};

/// Results by the run's line of JSON.
#[derive(Debug, Default)]
pub(super) struct Results(HashMap<String, Result<RunResult, String>>);

impl Results {
    /// Simulates one run.
    pub(super) fn of(run: &RunSpec) -> Self {
        Self(HashMap::from([(line(run), result_of(run))]))
    }

    /// The result of a run; `None` if it failed.
    pub(super) fn get(&self, run: &RunSpec) -> Option<&RunResult> {
        self.0.get(&line(run))?.as_ref().ok()
    }

    /// Runs that failed, in an order that is always the same.
    pub(super) fn failures(&self) -> Vec<String> {
        let failed = self.0.iter().filter_map(|(run, result)| {
            let error = result.as_ref().err()?;
            Some(format!("The run {run} failed: {error}."))
        });
        let mut failed: Vec<_> = failed.collect();
        failed.sort();
        failed
    }
}

/// Simulates everything that the experiments need.
pub(super) fn all(experiments: &[Experiment], jobs: usize, progress: &mut dyn Progress) -> Result<Results> {
    let mut runs: Vec<RunSpec> = Vec::new();
    let mut results = Results::default();
    for case in experiments.iter().flat_map(|experiment| &experiment.cases) {
        if results.0.insert(line(&case.run), Err("was not done".to_owned())).is_none() {
            runs.push(case.run.clone());
        }
    }
    let mut stage = Stage::begin(progress, "simulating", "runs", runs.len());
    jobs::each(&runs, jobs, result_of, |index, result| {
        results.0.insert(line(&runs[index]), result);
        Ok(stage.step()?)
    })?;
    Ok(results)
}

/// The result of one run, or what went wrong.
fn result_of(run: &RunSpec) -> Result<RunResult, String> {
    simulate(run).map_err(|error| format!("{error:#}"))
}

fn line(run: &RunSpec) -> String {
    serde_json::to_string(run).expect("a run has only text and numbers")
}
