//! Options of a recording.

use std::ffi::OsString;
use std::time::Duration;

use pageset_trace::{RecordingCost, VisitCost};

use crate::condition::Condition;
use crate::cpus::CpuList;

/// What to record, and when to end. The first condition that is met ends the recording. The caller's callback
/// can end it too.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// CPUs to record. `None`: all that are online.
    pub cpus: Option<CpuList>,
    /// Size of the kernel's buffer per CPU, in bytes. `None`: [`Options::buffer_bytes_of`] this machine.
    pub buffer_bytes: Option<u64>,
    /// Length of the recording.
    pub duration: Option<Duration>,
    /// A command with its arguments. The recording ends with it. Empty for no command.
    pub command: Vec<OsString>,
    /// Whether to record page faults from user mode. They are many, and a replay does not need them.
    pub with_faults: bool,
    /// Whether to record call chains of waits, which show the purpose of a wait for a zone's lock.
    pub with_call_chains: bool,
    /// Whether to store names of tasks and their control groups. Without it, the trace contains no task name.
    pub with_names: bool,
    /// Whether to count hits of tracepoints instead of recording events: [`count`](crate::count).
    pub only_counts: bool,
    /// The cost of recording for the command, if it was [measured](crate::measure). Stored in the trace.
    pub cost: Option<RecordingCost>,
    /// The cost of visits to the zones on this machine, if it was measured. Stored in the trace.
    pub visit_cost: Option<VisitCost>,
    /// A condition that ends the recording.
    pub until: Option<Condition>,
    /// When the kernel's buffers are read.
    pub reading: Timing,
}

/// When the kernel's buffers are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// Continuously: everything is recorded.
    #[default]
    AllTheTime,
    /// At the end: a flight recorder. The buffers keep the latest events. The trace begins where all buffers
    /// have events.
    AtTheEnd,
}

/// Default bytes of a buffer: 400 000 events, which a busy CPU produces in half a second.
const BUFFER_BYTES: u64 = 16 << 20;
/// All buffers together take at most this fraction of the memory. Guess.
const MEMORY_SHARE: u64 = 32;
/// Minimum bytes of a buffer.
const BUFFER_BYTES_MIN: u64 = 1 << 20;

impl Options {
    /// Bytes of a buffer for each of `cpus` CPUs, on a machine with `memory_bytes`.
    #[must_use]
    pub fn buffer_bytes_of(cpus: usize, memory_bytes: u64) -> u64 {
        let share = memory_bytes / MEMORY_SHARE / cpus.max(1) as u64;
        share.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_fit_into_the_memory() {
        assert_eq!(Options::buffer_bytes_of(2, 24 << 30), 16 << 20);
        assert_eq!(Options::buffer_bytes_of(256, 64 << 30), 8 << 20);
        assert_eq!(Options::buffer_bytes_of(256, 1 << 30), 1 << 20);
        assert_eq!(Options::buffer_bytes_of(0, 0), 1 << 20);
    }
}
