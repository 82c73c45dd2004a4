//! The events of a recording as a table that is read as it is used.

use arrow_array::RecordBatchReader;
use arrow_schema::{ArrowError, SchemaRef};
use pageset_arrow::{RecordBatch, events};
use pageset_trace::{Event, TraceReader as _};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::raised;
use crate::recording::{Source, Watched};
use crate::stream::{capsule, schema_capsule};
use crate::work::Watch;

/// The events of a recording: a table that is read from the file, batch by batch, each time that somebody uses it.
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
        // The interface allows to give the columns as they are.
        let _ = requested_schema;
        let reader = py.detach(|| self.source.open(&Watch::default())).map_err(raised)?;
        capsule(py, Batches { reader, events: Vec::new(), has_ended: false })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &events::schema())
    }
}

/// What is still to be read; it ends after an error.
struct Batches {
    reader: Watched,
    events: Vec<Event>,
    has_ended: bool,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let read = self.reader.read_block(&mut self.events);
        self.has_ended = !matches!(read, Ok(1..));
        let batch = match read {
            Ok(0) => return None,
            Ok(_) => events::batch(&self.events),
            Err(error) => Err(error.into()),
        };
        Some(batch.map_err(|error| ArrowError::ExternalError(error.into())))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        events::schema()
    }
}
