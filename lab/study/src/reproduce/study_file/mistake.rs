//! A mistake in a study's file, and where it is. All errors of a study are [`anyhow::Error`]s; one with a `Mistake`
//! gets the file's name and the line at the end, and others name their file themselves.

use std::fmt::Display;
use std::ops::Range;

use anyhow::{Error, Result, anyhow};
use toml::Spanned;

/// Something between these bytes of the study's file, with a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
struct Mistake {
    bytes: Range<usize>,
    problem: String,
}

/// A mistake where `written` is.
pub(super) fn mistake<T>(written: &Spanned<T>, problem: impl Display) -> Error {
    Mistake { bytes: written.span(), problem: problem.to_string() }.into()
}

/// Says where in the study's file an error comes from.
pub(super) trait At {
    fn at<T>(self, written: &Spanned<T>) -> Self;
}

impl<R> At for Result<R> {
    fn at<T>(self, written: &Spanned<T>) -> Self {
        self.map_err(|error| mistake(written, format!("{error:#}")))
    }
}

/// The error with its place in the study's file, which has this name and text.
pub(super) fn placed(error: Error, file: &str, text: &str) -> Error {
    match error.downcast::<Mistake>() {
        Ok(Mistake { bytes, problem }) => {
            let line = 1 + text.bytes().take(bytes.start).filter(|byte| *byte == b'\n').count();
            anyhow!("{file}:{line}: {problem}")
        }
        Err(error) => error,
    }
}
