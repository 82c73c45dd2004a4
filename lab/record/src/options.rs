//! Options of a recording.

use std::ffi::OsString;
use std::time::Duration;

use pageset_trace::{RecordingCost, VisitCost};

use crate::condition::Condition;
use crate::cpus::CpuList;

/// Options of a recording: what is recorded, and when the recording ends. The recording ends when the first
/// of the ending options is met, or when the caller's callback ends the recording.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// CPUs to record. `None` stands for all CPUs that are online.
    pub cpus: Option<CpuList>,
    /// Size of the kernel's buffer per CPU, in bytes. `None` stands for the size that
    /// [`Options::buffer_bytes_of`] returns for this machine.
    pub buffer_bytes: Option<u64>,
    /// Length of the recording.
    pub duration: Option<Duration>,
    /// A command with its arguments; empty for no command. The recording ends when the command ends.
    pub command: Vec<OsString>,
    /// Whether to record page faults from user mode. Page faults are many, and a replay does not need page
    /// faults.
    pub with_faults: bool,
    /// Whether to record call chains of waits. A call chain shows whether a wait is for a zone lock, and why.
    pub with_call_chains: bool,
    /// Whether to store names of tasks and their control groups. If names are not stored, the trace contains
    /// no name of a task.
    pub with_names: bool,
    /// Whether to count hits of tracepoints instead of recording events, by [`count`](crate::count).
    pub only_counts: bool,
    /// The slowdown of the command by recording, if this slowdown was [measured](crate::measure). The trace
    /// stores this value.
    pub cost: Option<RecordingCost>,
    /// The cost of zone visits on this machine, if this cost was measured. The trace stores this value.
    pub visit_cost: Option<VisitCost>,
    /// A condition that ends the recording.
    pub until: Option<Condition>,
    /// The times when the kernel's buffers are read.
    pub reading: Timing,
}

/// The times when the kernel's buffers are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// The buffers are read continuously, so all events are recorded.
    #[default]
    AllTheTime,
    /// The buffers are read at the end, as by a flight recorder. The buffers keep the latest events. The
    /// trace begins at the first time when all buffers have events.
    AtTheEnd,
}

/// Default bytes of a buffer. A buffer of this size holds 400 000 events, which a busy CPU produces in half a
/// second.
const BUFFER_BYTES: u64 = 16 << 20;
/// All buffers together take at most the memory divided by this number, which is a guess.
const MEMORY_SHARE: u64 = 32;
/// Minimum bytes of a buffer.
const BUFFER_BYTES_MIN: u64 = 1 << 20;

impl Options {
    /// Returns the bytes of a buffer for each of `cpus` CPUs, on a machine with `memory_bytes` of memory.
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
