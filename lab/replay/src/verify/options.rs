//! Options of a verification, and its errors.

use pageset_core::Policy;
use pageset_trace::{Layout, TraceError};

use super::explain::ExplainRequest;
use super::mode::Mode;
use crate::replay::VmSettings;

/// Options of a verification.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// The policy that is compared with the kernel. `None` stands for the policy of the recorded kernel.
    pub policy: Option<Policy>,
    /// The machine that replaces the recorded machine. `None` stands for the recorded machine.
    pub machine: Option<Layout>,
    /// Values of the settings that differ from the recorded machine's settings.
    pub settings: VmSettings,
    /// How much the kernel's events correct the page sets.
    pub mode: Mode,
    /// The mismatch that the report explains in detail.
    pub explain: Option<ExplainRequest>,
}

/// Reasons why a verification could not be done.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The recording is damaged or unreadable, or lacks events for a comparison.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The recording lacks data that the comparison needs, or exceeds a limit.
    #[error("{path}: {problem}; {remedy}")]
    Unusable {
        /// The path of the recording.
        path: String,
        /// The reason why the recording cannot be verified.
        problem: String,
        /// The action that lets the user get a verification.
        remedy: &'static str,
    },
}
