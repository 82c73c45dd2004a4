//! Why a replay could not be done.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pageset_trace::TraceError;

use super::portions::{Portions, Stored};

/// Why a replay could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording is damaged or unreadable, or lacks events for a replay.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The caller set [`ReplayOptions::cancel`](crate::ReplayOptions::cancel).
    #[error("cancelled")]
    Cancelled,
    /// One side of a comparison has no recording, or no policy is known for the kernel of one side.
    #[error("{0}")]
    NoMachine(String),
    /// The caller asked for fewer CPUs than the machine has, but a replay cannot leave out recorded CPUs.
    #[error("the machine has {there} CPUs: its memory cannot be shared between fewer ({asked})")]
    TooFewCpus {
        /// Number of CPUs that the caller asked for.
        asked: u32,
        /// Number of CPUs of the machine.
        there: u32,
    },
    /// The policy's page sets depend on the zone's lists, but a replay has no zone (decision 0010).
    #[error(
        "{0} cannot be replayed: its CPUs own pageblocks, but a replay has no zones, only page sets. \
         `pageset simulate --recording` and `pageset simulate -w trace:FILE` play it"
    )]
    NeedsZone(&'static str),
    /// Neither memory nor a file has room for the acts, or for the recorded kernel's decisions.
    #[error(
        "replaying this recording needs {} MiB, in memory or in a file below {} ($TMPDIR): {source}",
        wanted >> 20,
        std::env::temp_dir().display()
    )]
    NoRoom {
        /// Number of bytes of the acts, or of the decisions, that were read so far.
        wanted: u64,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is no memory for the notes about a zone's frames.
    #[error(
        "replaying this recording needs more than {} MiB for notes about the pages of one zone, and there is no memory; \
         free some memory, or raise the limit (`ulimit -v`, the control group)",
        wanted >> 20
    )]
    NoMemory {
        /// Number of bytes of the notes so far, plus the bytes of the next piece of notes.
        wanted: u64,
    },
    /// A recording that was given as a repeat has another kernel, machine or setting.
    #[error("{path}: this is not a repeat of the first recording: it has another {what}")]
    NoRepeat {
        /// The path of this recording.
        path: PathBuf,
        /// The difference: the kernel, the machine or the setting that differs.
        what: String,
    },
    /// The machine cannot be built.
    #[error("the machine description does not describe a machine that can be built: {0}")]
    Layout(String),
}

impl ReplayError {
    pub(super) fn no_room<T: Stored<BYTES>, const BYTES: usize>(
        list: &Portions<T, BYTES>,
        source: std::io::Error,
    ) -> Self {
        Self::NoRoom { wanted: list.bytes().0, source }
    }
}

/// Returns an error if the caller has cancelled the replay.
pub(super) fn go_on(cancel: &AtomicBool) -> Result<(), ReplayError> {
    if cancel.load(Relaxed) { Err(ReplayError::Cancelled) } else { Ok(()) }
}
