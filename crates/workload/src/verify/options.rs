//! What to verify, how, and why it could not be done.

use pageset_core::Policy;
use pageset_trace::{Layout, TraceError};

use super::Class;
use crate::replay::VmSettings;

/// How far the kernel's own events steer the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Each decision is predicted, then the kernel's is carried out; samples reset `count` and `high`.
    #[default]
    Step,
    /// As `Step`, but samples are only compared with.
    Blind,
    /// The policy's own decisions are carried out; the kernel's are only compared with.
    Free,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Step, Self::Blind, Self::Free];

    /// The name in commands and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Blind => "blind",
            Self::Free => "free",
        }
    }

    /// The mode called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Which mismatch to show with the events around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainRequest {
    /// Count from 1, in the order of the trace.
    pub number: u64,
    /// Count only mismatches of this class.
    pub class: Option<Class>,
}

/// How a verification is done.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// The policy that should have decided as the kernel did. `None`: the recorded kernel's.
    pub policy: Option<Policy>,
    /// The machine, instead of the recording's own.
    pub machine: Option<Layout>,
    /// VmSettings that the recorded machine did not have.
    pub settings: VmSettings,
    /// How far the kernel's own events steer the comparison.
    pub mode: Mode,
    /// A mismatch to show.
    pub explain: Option<ExplainRequest>,
}

/// Why a verification could not be done.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The recording is damaged or unreadable.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The recording lacks something, or has too much of it.
    #[error("{path}: {problem}; {remedy}")]
    Unusable {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_found_by_name() {
        for mode in Mode::ALL {
            assert_eq!(Mode::named(mode.name()), Some(mode));
        }
        assert_eq!(Mode::named("auto"), None);
    }
}
