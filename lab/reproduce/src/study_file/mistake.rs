//! Errors with a position in a study's file. If an [`anyhow::Error`] contains a `Mistake`, [`placed`] adds
//! the name of the file and the line. An error without a `Mistake` already names its file.

use std::fmt::Display;
use std::ops::Range;

use anyhow::{Error, Result, anyhow};
use toml::Spanned;

/// A mistake in the study's file: the position of the wrong text, and a sentence with the problem and its
/// remedy.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
struct Mistake {
    bytes: Range<usize>,
    problem: String,
}

/// Makes an error from the problem with a part of the study's file. `written` is this part of the file.
pub(super) fn mistake<T>(written: &Spanned<T>, problem: impl Display) -> Error {
    Mistake { bytes: written.span(), problem: problem.to_string() }.into()
}

/// A trait that adds a position in the study's file to an error.
pub(super) trait At {
    fn at<T>(self, written: &Spanned<T>) -> Self;
}

impl<R> At for Result<R> {
    fn at<T>(self, written: &Spanned<T>) -> Self {
        self.map_err(|error| mistake(written, format!("{error:#}")))
    }
}

/// Returns the error with the file's name and line in its message. `file` and `text` are the name and the
/// text of the study's file.
pub(super) fn placed(error: Error, file: &str, text: &str) -> Error {
    match error.downcast::<Mistake>() {
        Ok(Mistake { bytes, problem }) => {
            let line = 1 + text.bytes().take(bytes.start).filter(|byte| *byte == b'\n').count();
            anyhow!("{file}:{line}: {problem}")
        }
        Err(error) => error,
    }
}
