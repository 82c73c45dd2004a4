//! What to record.

use std::ffi::OsString;
use std::time::Duration;

use pageset_trace::{RecordingCost, VisitCost};

use crate::condition::Condition;
use crate::cpus::CpuList;

/// What to record, and until when. The first of the endings that is met ends it, and so does whoever watches.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// CPUs to record; `None`: all that are switched on.
    pub cpus: Option<CpuList>,
    /// Bytes of the kernel's buffer for each CPU; `None`: [`Options::buffer_bytes_of`] this machine.
    pub buffer_bytes: Option<u64>,
    /// Record so long.
    pub duration: Option<Duration>,
    /// Record while this command runs, with its arguments; empty: no command.
    pub command: Vec<OsString>,
    /// Page faults from user mode too. A replay does not need them, and they are many.
    pub with_faults: bool,
    /// Who waits for a zone's lock, by the call chains of waits.
    pub with_call_chains: bool,
    /// Names of tasks, and their control groups. Without it, no name of a task is in the trace.
    pub with_names: bool,
    /// Hits of tracepoints instead of events: [`count`](crate::count).
    pub only_counts: bool,
    /// What recording costs the command, if it was [measured](crate::measure): kept in the trace.
    pub cost: Option<RecordingCost>,
    /// What visits to the zones cost on this machine, if it was measured: kept in the trace.
    pub visit_cost: Option<VisitCost>,
    /// End when this is met.
    pub until: Option<Condition>,
    /// When what the kernel writes is read.
    pub reading: Timing,
}

/// When what the kernel writes is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// All the time: everything is recorded.
    #[default]
    AllTheTime,
    /// At the end: a flight recorder. The buffers keep what was last, and the trace begins where all of them do.
    AtTheEnd,
}

/// Bytes of a buffer if nobody says: 400 000 events, which a busy CPU makes in half a second.
const BUFFER_BYTES: u64 = 16 << 20;
/// Buffers of all CPUs together are at most this part of the memory. Guess.
const MEMORY_SHARE: u64 = 32;
/// A buffer is never smaller.
const BUFFER_BYTES_MIN: u64 = 1 << 20;

impl Options {
    /// Bytes of a buffer for each of `cpus` CPUs of a machine with `memory_bytes`.
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
