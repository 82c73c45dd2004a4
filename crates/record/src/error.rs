//! Why a recording does not begin, or does not go on.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// A recording failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Something that a recording needs is missing, or not allowed.
    #[error("{problem}; {remedy}")]
    Refused {
        /// What is missing.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// This user may not use the kernel's tracing files.
    #[error("only root may use {}; run this as root, as with `sudo`", path.display())]
    NotRoot {
        /// Their directory, or one of them.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, as in "cannot read".
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A file of the kernel has a form that this program does not know.
    #[error("{}: {problem}; this kernel needs a newer version of this program", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What is not known.
        problem: String,
    },
    /// The command could not be started.
    #[error("cannot start {program}: {source}; check its name")]
    Command {
        /// Its first word.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The trace could not be written. The file is a trace that was cut off.
    #[error("cannot write the trace: {0}; what was written so far can be read with --recover")]
    Output(io::Error),
}

impl RecordError {
    pub(crate) fn io(path: impl AsRef<Path>, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.as_ref().to_owned(), action, source }
    }

    pub(crate) fn unknown(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::Unknown { path: path.as_ref().to_owned(), problem: problem.into() }
    }
}
