//! Gives advice for a machine, from a recording of its load.

use pageset_replay::advise::advise as say;
use pageset_study::latency::simulated;
use pyo3::prelude::*;

use crate::document;
use crate::recording::Recording;
use crate::stream::Table;
use crate::work::{Interrupted, run};

/// Says whether page sets are the cause of a recording's problem, and which change would help.
#[pyfunction]
#[pyo3(signature = (recording, *, progress))]
pub(crate) fn advise(
    py: Python<'_>,
    recording: &Recording,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Table)> {
    let source = recording.source.clone();
    let advice = run(py, progress, Interrupted::LeftAlone, move |watch| {
        say(|| source.open(&watch), simulated, &mut watch.clone())
    })?;
    Ok((document::of(&advice)?, Table::of(&advice.forecasts)?))
}
