//! Converts results to JSON text, which the Python part turns into values.

use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{raised, refused};

/// Returns a result as JSON text.
pub(crate) fn of(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| raised(error.into()))
}

/// Parses a request that the Python part wrote as JSON text.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(refused)
}
