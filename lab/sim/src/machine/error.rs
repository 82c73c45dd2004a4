//! Errors of machine files.

use std::fmt;

/// A machine file that cannot be used. The message names the file, the mistake and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineError {
    origin: String,
    problem: String,
}

impl MachineError {
    pub(crate) fn new(origin: &str, problem: String) -> Self {
        Self { origin: origin.to_owned(), problem }
    }
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "machine file {}: {}", self.origin, self.problem.trim_end())
    }
}

impl std::error::Error for MachineError {}
