//! Shows the events of a recording as a table. Each use of the table reads the file.

use pageset_arrow::events::{self, Batches};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::raised;
use crate::recording::Source;
use crate::stream::{capsule, schema_capsule};
use crate::work::Watch;

/// The events of a recording, as a table. Each use of the object reads the events from the recording's file
/// again, batch by batch.
#[pyclass(frozen, module = "pageset")]
pub(crate) struct Events {
    source: Source,
    name: String,
}

impl Events {
    pub(crate) const fn new(source: Source, name: String) -> Self {
        Self { source, name }
    }
}

#[pymethods]
impl Events {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        events::schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<pageset.Events of {}: {}>", self.name, self.column_names().join(", "))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a table to ignore the requested schema, so the columns stay as they are.
        let _ = requested_schema;
        let reader = py.detach(|| self.source.open(&Watch::default())).map_err(raised)?;
        capsule(py, Batches::new(reader))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &events::schema())
    }
}
