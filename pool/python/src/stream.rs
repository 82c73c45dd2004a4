//! Offers tables by Arrow's C interface. Table engines such as Polars read data through Arrow's C interface
//! without copying.
//!
//! Source: the Arrow PyCapsule interface of Arrow 14, which also defines the capsules' names.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Schema};
use pageset_arrow::{RecordBatch, file, rows};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::raised;

/// Makes a capsule that passes batches to its reader. Dropping the capsule frees the batches that were not
/// read.
pub(crate) fn capsule(
    py: Python<'_>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
}

/// Makes a capsule with the description of the columns.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| raised(error.into()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// A table in memory, for Polars, pandas, DuckDB, pyarrow and every engine with Arrow's interface.
#[pyclass(frozen, module = "pageset")]
pub(crate) struct Table(pub(crate) RecordBatch);

impl Table {
    /// A table with a row for each value.
    pub(crate) fn of<T: Serialize + DeserializeOwned>(all: &[T]) -> PyResult<Self> {
        rows::batch(all).map(Self).map_err(raised)
    }

    /// Returns a table with the columns of both tables. The two tables must have the same number of rows.
    pub(crate) fn beside(self, other: &Self) -> PyResult<Self> {
        rows::side_by_side(&[self.0, other.0.clone()]).map(Self).map_err(raised)
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Pickles the table as the bytes of an Arrow stream.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = file::stream(&slf.get().0).map_err(raised)?;
        Ok((slf.get_type().getattr("_of_stream")?, (PyBytes::new(slf.py(), &bytes),)))
    }

    /// Makes the table from the bytes of an Arrow stream.
    #[staticmethod]
    fn _of_stream(bytes: &[u8]) -> PyResult<Self> {
        file::from_stream(bytes).map(Self).map_err(raised)
    }

    fn __repr__(&self) -> String {
        format!("<pageset.Table of {} rows: {}>", self.0.num_rows(), self.column_names().join(", "))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a table to ignore the requested schema, so the columns stay as they are.
        let _ = requested_schema;
        let batch: Result<_, ArrowError> = Ok(self.0.clone());
        capsule(py, RecordBatchIterator::new([batch], self.0.schema()))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }
}
