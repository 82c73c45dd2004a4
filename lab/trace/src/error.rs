//! Errors about traces. Each error has the file and the problem. Most errors also have a remedy, and the
//! place in the file if one place is malformed.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// A recording could not be read, understood or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The operating system reported an error.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The action that failed, such as "read". In the error message, the action follows the word
        /// "cannot".
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A line of a text format is malformed.
    #[error("{}:{line}: {problem}; {remedy}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// The bytes at a place in a binary file are malformed.
    #[error("{}: byte {offset}: {problem}; {remedy}", path.display())]
    Offset {
        /// The file.
        path: PathBuf,
        /// Offset in bytes from the file's start. If the whole file is compressed, the offset counts
        /// decompressed bytes.
        offset: u64,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// A native file is damaged. Reading with recovery delivers the events before the damage.
    #[error("{}: byte {offset}: {problem}; copy or convert the recording again, or read the undamaged part with recovery", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset in bytes from the file's start.
        offset: u64,
        /// The problem.
        problem: String,
    },
    /// The whole file is unusable.
    #[error("{}: {problem}; {remedy}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
}

impl TraceError {
    /// The file that the error is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::Line { path, .. }
            | Self::Offset { path, .. }
            | Self::Damaged { path, .. }
            | Self::File { path, .. } => path,
        }
    }

    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, source }
    }

    pub(crate) fn line(
        path: &Path,
        line: u64,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Line { path: path.to_owned(), line, problem: problem.into(), remedy: remedy.into() }
    }

    pub(crate) fn offset(
        path: &Path,
        offset: u64,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Offset { path: path.to_owned(), offset, problem: problem.into(), remedy: remedy.into() }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, problem: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), offset, problem: problem.into() }
    }

    pub(crate) fn file(path: &Path, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), problem: problem.into(), remedy: remedy.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_file_place_problem_and_remedy() {
        let path = Path::new("a.txt");
        assert_eq!(
            TraceError::line(path, 7, "no pfn", "record again").to_string(),
            "a.txt:7: no pfn; record again"
        );
        assert_eq!(
            TraceError::offset(path, 32, "bad checksum", "copy again").to_string(),
            "a.txt: byte 32: bad checksum; copy again"
        );
        assert_eq!(TraceError::file(path, "empty", "record again").path(), path);
    }
}
