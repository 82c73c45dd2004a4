//! Replay: a recording's allocations and frees, driven through the core.

mod outcome;

pub use outcome::Outcome;

use pageset_core::Policy;
use pageset_trace::{LostEvents, Machine, TraceError, TraceReader};

/// What to replay under.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The policies, in the order of the rows; the first is what the others are compared with.
    pub policies: Vec<Policy>,
    /// The machine to replay on, instead of the recording's own.
    pub machine: Option<Machine>,
}

/// A finished replay.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The machine that was replayed on.
    pub machine: Machine,
    /// Events read.
    pub events: u64,
    /// What the recording lacks.
    pub lost: LostEvents,
    /// Events that could not be replayed, by reason; the same under every policy.
    pub unreplayed: Unreplayed,
    /// One row per policy, in the order asked for.
    pub outcomes: Vec<Outcome>,
}

/// Events of the recording that were not replayed, by reason. The counts are the same under every policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Unreplayed {
    /// Allocations that failed in the recording already.
    pub failed_in_recording: u64,
    /// Events about frames outside the machine's zones.
    pub foreign_frames: u64,
    /// Events with an order or CPU that the machine does not have.
    pub impossible: u64,
    /// Allocations of frames that the recording shows as in use: a free was lost.
    pub allocated_twice: u64,
}

/// Why a replay could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording is damaged or unreadable.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The recording does not say what machine it comes from, and none was given.
    #[error("{0}")]
    NoMachine(String),
    /// The machine cannot be built.
    #[error("the machine description does not describe a machine that can be built: {0}")]
    Machine(String),
}

/// Replays a recording. `progress` is told the events read so far, now and then.
///
/// # Errors
/// If the recording is damaged, or no machine is known that could be built.
pub fn replay(
    _reader: &mut dyn TraceReader,
    _options: &ReplayOptions,
    _progress: impl FnMut(u64),
) -> Result<Replay, ReplayError> {
    Err(ReplayError::Machine("being written".into()))
}
