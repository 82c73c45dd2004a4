//! Turns errors into exceptions, with the messages of the command `pageset`.

use std::io;
use std::path::Path;

use anyhow::anyhow;
use pageset_replay::{ReplayError, VerifyError};
use pageset_trace::TraceError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use pageset::AllocError;

mod exceptions {
    //! Exceptions that the Python part defines, because a class that Rust defines cannot have two bases.

    pyo3::import_exception!(pageset.errors, Error);
    pyo3::import_exception!(pageset.errors, OutOfMemoryError);
}

/// The exception for an error. If the cause is an error of the system, the exception is a `FileError`, which
/// is also an `OSError`.
pub(crate) fn raised(error: anyhow::Error) -> PyErr {
    raised_at(error, None)
}

/// Does the same as [`raised`] for work on the file `path`. The error itself may have no path.
pub(crate) fn raised_at(error: anyhow::Error, path: Option<&Path>) -> PyErr {
    let of_system = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(errno);
    let (text, path) = match of_trace(error) {
        Ok(error) => (with_remedy(&error), Some(error.path().to_owned())),
        Err(error) => (format!("{error:#}"), path.map(Path::to_owned)),
    };
    let Some(errno) = of_system else { return exceptions::Error::new_err(text) };
    Python::attach(|py| {
        let exception = py
            .import("pageset.errors")
            .and_then(|errors| errors.call_method1("of_file", (text, errno, path.map(file_name))));
        exception.map_or_else(|error| error, PyErr::from_value)
    })
}

/// The `errno` of an error, if the error is one of the system's.
fn errno(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or(match error.kind() {
        io::ErrorKind::NotFound => Some(libc::ENOENT),
        io::ErrorKind::AlreadyExists => Some(libc::EEXIST),
        io::ErrorKind::PermissionDenied => Some(libc::EACCES),
        io::ErrorKind::IsADirectory => Some(libc::EISDIR),
        _ => None,
    })
}

/// `OSError.filename` is text.
fn file_name(path: std::path::PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

/// The exception for an argument whose number is out of range.
pub(crate) fn bad_number(problem: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(problem.to_string())
}

/// The exception for any other wrong argument.
pub(crate) fn refused(problem: impl std::fmt::Display) -> PyErr {
    exceptions::Error::new_err(problem.to_string())
}

/// The exception for a pool without free pages.
pub(crate) fn out_of_memory(error: AllocError) -> PyErr {
    exceptions::OutOfMemoryError::new_err(error.to_string())
}

/// Extracts the trace error that an error contains, or returns the error.
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

/// The error's text, with a remedy: a command, or the argument that helps.
fn with_remedy(error: &TraceError) -> String {
    let remedy = match error {
        TraceError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "`pageset record -o FILE -- COMMAND` makes a recording; without a file name, the bundled recording is read"
        }
        TraceError::Line { .. } => "or skip such lines with lenient=True",
        TraceError::Damaged { .. } => "the argument for that is recover=True",
        _ => return error.to_string(),
    };
    format!("{error}; {remedy}")
}
