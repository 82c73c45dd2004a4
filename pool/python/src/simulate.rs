//! Runs workloads on simulated machines.

use pageset_study::jobs_of_this_machine;
use pageset_study::simulate::{RunSpec, simulate_all};
use pyo3::prelude::*;

use crate::document;
use crate::number::Whole;
use crate::stream::Table;
use crate::work::{Interrupted, run};

/// Runs all specs, up to `jobs` at once. The results are in the order of the specs.
#[pyfunction]
#[pyo3(signature = (specs, *, jobs, progress))]
pub(crate) fn simulate(
    py: Python<'_>,
    specs: &str,
    jobs: Option<Whole<u16>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Table)> {
    let specs: Vec<RunSpec> = document::read(specs)?;
    let jobs = jobs.map_or_else(jobs_of_this_machine, |jobs| usize::from(jobs.0));
    let (specs, results) = run(py, progress, Interrupted::LeftAlone, move |mut watch| {
        simulate_all(&specs, jobs, &mut watch).map(|results| (specs, results))
    })?;
    Ok((document::of(&results)?, Table::of(&specs)?.beside(&Table::of(&results)?)?))
}
