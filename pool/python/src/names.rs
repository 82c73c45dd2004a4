//! Lists the names of policies, machines and workloads, each name with a line of description.

use pageset_core::POLICIES;
use pageset_study::load::Workload;
use pageset_study::pageset_sim::MACHINES;
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn described<'py>(
    py: Python<'py>,
    names: impl IntoIterator<Item = (&'static str, String)>,
) -> PyResult<Bound<'py, PyDict>> {
    let lines = PyDict::new(py);
    names.into_iter().try_for_each(|(name, line)| lines.set_item(name, line))?;
    Ok(lines)
}

/// All policies by name, oldest first, each with its description.
#[pyfunction]
pub(crate) fn policies(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    described(py, POLICIES.iter().map(|policy| (policy.name, policy.summary.to_owned())))
}

/// All machines that `simulate` knows by name, each with its description.
#[pyfunction]
pub(crate) fn machines(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    described(py, MACHINES.iter().map(|machine| (machine.name, machine.parse().title)))
}

/// All workloads that `simulate` knows by name, each with its description.
#[pyfunction]
pub(crate) fn workloads(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    described(py, Workload::ALL.iter().map(|workload| (workload.name, workload.summary.to_owned())))
}
