//! The reasons why a recording does not begin or continue.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// A recording failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Something that a recording needs is missing or forbidden.
    #[error("{problem}; {remedy}")]
    Refused {
        /// The missing or forbidden thing.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// This user may not use the kernel's tracing files.
    #[error("only root may use {}; run this as root, as with `sudo`", path.display())]
    NotRoot {
        /// The directory of the tracing files, or one of the files.
        path: PathBuf,
    },
    /// The system reported an error.
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
    /// A file of the kernel has a form that this program does not know.
    #[error("{}: {problem}; this kernel needs a newer version of this program", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The unknown part.
        problem: String,
    },
    /// The command could not be started.
    #[error("cannot start {program}: {source}; check its name")]
    Command {
        /// The command's first word.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The trace could not be written. The file holds the part that was written before.
    #[error("cannot write the trace: {source}; {}{}", written(*bytes), running(*still_running))]
    Output {
        /// The system's reason.
        source: io::Error,
        /// Number of bytes that were written before the error.
        bytes: u64,
        /// The number of the command's process. `None` if the process has ended.
        still_running: Option<u32>,
    },
}

fn written(bytes: u64) -> String {
    match bytes {
        0 => "nothing was written before".to_owned(),
        _ => format!("the {bytes} bytes written before can be read with --recover"),
    }
}

fn running(process: Option<u32>) -> String {
    process.map_or_else(String::new, |pid| format!("; the recorded command still runs as process {pid}"))
}

impl RecordError {
    /// Makes the error for a trace whose file could not even be begun.
    pub(crate) fn unwritten(source: io::Error) -> Self {
        Self::Output { source, bytes: 0, still_running: None }
    }

    pub(crate) fn io(path: impl AsRef<Path>, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.as_ref().to_owned(), action, source }
    }

    pub(crate) fn unknown(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::Unknown { path: path.as_ref().to_owned(), problem: problem.into() }
    }
}
