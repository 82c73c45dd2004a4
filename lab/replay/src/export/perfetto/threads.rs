//! The tracks of threads. A recording may have any number of threads, so only threads with slices get a
//! track. If the list of described tracks is full, the list is cleared. After the list was cleared, a track
//! may be described a second time.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;

use pageset_report::printable;
use pageset_trace::{TaskIndex, Tasks, TraceInfo};

use super::packets::{Descriptor, Packets, Sequence, TrackId, TrackKind};

/// Maximum number of tracks in the list of described tracks. At this length, the list is cleared.
const REMEMBERED_MAX: usize = 64 << 10;
/// Numbers of thread tracks begin here. Other tracks have lower numbers.
const FIRST_TRACK: u64 = 1 << 33;
/// Idle tasks have pid 0 on each CPU. Track numbers of idle tasks come after the numbers for 2^32 threads.
const FIRST_IDLE_TRACK: u64 = FIRST_TRACK + (1 << 32);
/// The largest number of a thread. No kernel uses higher numbers, and a higher number would not fit into the
/// trace's field.
const TID_MAX: u32 = i32::MAX as u32;

/// Tracks of threads.
#[derive(Debug)]
pub(super) struct Threads<'info> {
    described: HashSet<TrackId>,
    /// Names of tasks, if the recording has them.
    names: Option<TaskIndex<'info>>,
}

impl<'info> Threads<'info> {
    pub(super) fn new(info: &'info TraceInfo) -> Self {
        Self { described: HashSet::new(), names: info.tasks.as_ref().map(Tasks::index) }
    }

    /// The name of a thread's process, without invisible characters.
    pub(super) fn process(&self, tid: u32, at_ns: u64) -> Option<Cow<'info, str>> {
        let names = self.names.as_ref()?;
        names.process_name(names.find(tid, at_ns)?).map(printable)
    }

    /// The track of a thread. The idle task of each CPU has its own track.
    pub(super) fn track(
        &mut self,
        packets: &mut Packets<'_>,
        sequence: Sequence,
        (pid, cpu): (u32, u16),
        at_ns: u64,
    ) -> io::Result<TrackId> {
        let number = if pid == 0 { FIRST_IDLE_TRACK + u64::from(cpu) } else { FIRST_TRACK + u64::from(pid) };
        let id = TrackId(number);
        if self.described.len() >= REMEMBERED_MAX {
            self.described.clear();
        }
        if self.described.insert(id) {
            let own =
                self.names.as_ref().and_then(|names| names.name(names.find(pid, at_ns)?)).map(printable);
            let (name, kind) = match pid {
                0 => (format!("idle task of CPU {cpu}"), TrackKind::Slices),
                1..=TID_MAX => (own.map(Cow::into_owned).unwrap_or_default(), TrackKind::Thread { tid: pid }),
                _ => (format!("thread {pid}"), TrackKind::Slices),
            };
            packets.describe(
                sequence,
                &Descriptor { id, parent: None, name: &name, description: "", kind, rank: 0 },
            )?;
        }
        Ok(id)
    }
}
