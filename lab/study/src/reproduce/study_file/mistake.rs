//! A mistake in a study's file, and where it is.

use std::ops::Range;

use toml::Spanned;

/// What is wrong with a study.
#[derive(Debug)]
pub(super) enum Mistake {
    /// Something between these bytes of the study's file, with a remedy.
    At(Range<usize>, String),
    /// Something in a file beside it. The error names the place.
    Beside(anyhow::Error),
}

pub(super) type Result<T, E = Mistake> = std::result::Result<T, E>;

impl Mistake {
    /// A mistake where `value` is written.
    pub(super) fn at<T>(value: &Spanned<T>, problem: impl Into<String>) -> Self {
        Self::At(value.span(), problem.into())
    }

    /// The mistake with its place in the study's file, which has this name and text.
    pub(super) fn placed(self, file: &str, text: &str) -> anyhow::Error {
        match self {
            Self::At(bytes, problem) => anyhow::anyhow!("{file}:{}: {problem}", line(text, bytes.start)),
            Self::Beside(error) => error,
        }
    }
}

impl From<anyhow::Error> for Mistake {
    fn from(error: anyhow::Error) -> Self {
        Self::Beside(error)
    }
}

/// The line, counted from 1, that has this byte.
pub(super) fn line(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
}
