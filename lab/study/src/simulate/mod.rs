//! Runs a workload on a simulated machine, under one policy.
//!
//! `spec` describes a run, `engine` does the run, `target` connects workloads with virtual CPUs, and `result`
//! has the run's figures.

mod engine;
mod result;
mod spec;
mod target;

use anyhow::Result;

use crate::jobs::{self, Stage};
pub(crate) use engine::run_plan;
pub use engine::{check, simulate};
use pageset_report::Progress;
pub use result::{RunResult, SharedUse};
pub use spec::{RunSpec, machine_text, parse_machine, recording};

/// Simulates all specs, up to `jobs` of them at once. The results are in the order of the specs, and do not
/// depend on `jobs`.
///
/// # Errors
///
/// Fails like [`simulate`], or with [`Cancelled`](pageset_report::Cancelled).
pub fn simulate_all(specs: &[RunSpec], jobs: usize, progress: &mut dyn Progress) -> Result<Vec<RunResult>> {
    let mut results: Vec<Option<RunResult>> = specs.iter().map(|_| None).collect();
    let cancel = progress.cancel();
    let mut stage = Stage::begin(progress, "simulating", "runs", specs.len());
    let work = |spec: &RunSpec| engine::simulate_until(spec, &cancel);
    jobs::each(specs, jobs, work, |index, result| {
        results[index] = Some(result?);
        Ok(stage.step()?)
    })?;
    Ok(results.into_iter().flatten().collect())
}
