//! Runs the command `pageset`, for the script that the package installs.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these arguments, and returns its exit status. If the arguments cannot be parsed, the
/// process ends.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| pageset_cli::command([OsString::from("pageset")].into_iter().chain(arguments)))
}
