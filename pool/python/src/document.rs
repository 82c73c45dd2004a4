//! Results pass to Python as JSON text, which Python turns into values.

use pyo3::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{raised, refused};

/// A result as text.
pub(crate) fn of(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| raised(error.into()))
}

/// Parses a request.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(refused)
}
