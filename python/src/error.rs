//! Errors become exceptions with the words of the command.

use std::io;

use anyhow::anyhow;
use pageset::AllocError;
use pageset_lab::recordings::{ReplayError, VerifyError};
use pageset_trace::TraceError;
use pyo3::PyErr;

mod exceptions {
    //! Classes that Python defines, so that one of them can be two things.

    pyo3::import_exception!(pageset.errors, Error);
    pyo3::import_exception!(pageset.errors, FileError);
    pyo3::import_exception!(pageset.errors, OutOfMemoryError);
}

/// The exception for an error: `FileError`, which is an `OSError` too, if the system has refused something.
pub(crate) fn raised(error: anyhow::Error) -> PyErr {
    let is_of_system = error.chain().any(|cause| cause.is::<io::Error>());
    let text = match of_trace(error) {
        Ok(error) => with_remedy(&error),
        Err(error) => format!("{error:#}"),
    };
    if is_of_system { exceptions::FileError::new_err(text) } else { exceptions::Error::new_err(text) }
}

/// What an argument cannot be.
pub(crate) fn refused(problem: impl std::fmt::Display) -> PyErr {
    exceptions::Error::new_err(problem.to_string())
}

/// A pool has no more pages.
pub(crate) fn out_of_memory(error: AllocError) -> PyErr {
    exceptions::OutOfMemoryError::new_err(error.to_string())
}

/// The error of a trace, whoever passed it on.
fn of_trace(error: anyhow::Error) -> Result<TraceError, anyhow::Error> {
    let error = match error.downcast() {
        Ok(ReplayError::Trace(error)) => return Ok(error),
        Ok(error) => anyhow!(error),
        Err(error) => error,
    };
    let error = match error.downcast() {
        Ok(VerifyError::Trace(error)) => return Ok(error),
        Ok(error) => anyhow!(error),
        Err(error) => error,
    };
    error.downcast()
}

/// Adds a remedy to errors of the system, and the argument that helps to those that have one.
fn with_remedy(error: &TraceError) -> String {
    let remedy = match error {
        TraceError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "check the path, or leave it out to use the bundled trace"
        }
        TraceError::Line { .. } => "or skip such lines with lenient=True",
        TraceError::Damaged { .. } => "the argument for that is recover=True",
        _ => return error.to_string(),
    };
    format!("{error}; {remedy}")
}
