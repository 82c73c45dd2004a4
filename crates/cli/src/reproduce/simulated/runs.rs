//! The runs of all experiments, each different one once.

use std::collections::HashMap;

use anyhow::Result;
use serde_json::{Map, Value};

use super::Experiment;
use crate::jobs;
use crate::progress::Progress;
use crate::simulate::{self, RunSpec};

/// Results by the run's line of JSON.
#[derive(Debug, Default)]
pub(super) struct Results(HashMap<String, Result<Map<String, Value>, String>>);

impl Results {
    /// Simulates one run.
    pub(super) fn of(run: &RunSpec) -> Self {
        Self(HashMap::from([(line(run), result_of(run))]))
    }

    /// A result of a run, by name; `None` if the run failed or has no such number.
    pub(super) fn get(&self, run: &RunSpec, name: &str) -> Option<f64> {
        self.0.get(&line(run))?.as_ref().ok()?.get(name)?.as_f64()
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
pub(super) fn all(experiments: &[Experiment], jobs: usize) -> Result<Results> {
    let mut runs: Vec<RunSpec> = Vec::new();
    let mut results = Results::default();
    for case in experiments.iter().flat_map(|experiment| &experiment.cases) {
        if results.0.insert(line(&case.run), Err("was not done".to_owned())).is_none() {
            runs.push(case.run.clone());
        }
    }
    let mut progress = Progress::new("simulating", "runs", Some(runs.len() as u64));
    let mut done = 0;
    jobs::each(&runs, jobs, result_of, |index, result| {
        results.0.insert(line(&runs[index]), result);
        done += 1;
        progress.update(done);
        anyhow::Ok(())
    })?;
    Ok(results)
}

/// The results of one run by name, or what went wrong.
fn result_of(run: &RunSpec) -> Result<Map<String, Value>, String> {
    let result = simulate::run(run).map_err(|error| format!("{error:#}"))?;
    match serde_json::to_value(result) {
        Ok(Value::Object(names)) => Ok(names),
        _ => Err("a result is not an object".to_owned()),
    }
}

fn line(run: &RunSpec) -> String {
    serde_json::to_string(run).expect("a run has only text and numbers")
}
