//! The tracks of threads. A recording may name any number of them: only those with slices of their own have a track, and
//! which of them were described is forgotten now and then, so that some are described again.

use std::collections::HashSet;
use std::io;

use super::packets::{Descriptor, Packets, Sequence, TrackId, TrackKind};

/// Threads whose tracks are remembered as described.
const REMEMBERED_MAX: usize = 64 << 10;
/// Tracks of threads have numbers from here on, other tracks lower ones.
const FIRST_TRACK: u64 = 1 << 33;
/// Idle tasks have the pid 0 on each CPU: their tracks come behind those of 2^32 threads.
const FIRST_IDLE_TRACK: u64 = FIRST_TRACK + (1 << 32);
/// A higher number is no thread of a kernel, and does not fit into the field for threads.
const TID_MAX: u32 = i32::MAX as u32;

/// Tracks of threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    described: HashSet<TrackId>,
}

impl Threads {
    /// The track of a thread; of the idle task, that of its CPU.
    pub(super) fn track(
        &mut self,
        packets: &mut Packets<'_>,
        sequence: Sequence,
        (pid, cpu): (u32, u16),
    ) -> io::Result<TrackId> {
        let number = if pid == 0 { FIRST_IDLE_TRACK + u64::from(cpu) } else { FIRST_TRACK + u64::from(pid) };
        let id = TrackId(number);
        if self.described.len() >= REMEMBERED_MAX {
            self.described.clear();
        }
        if self.described.insert(id) {
            let (name, kind) = match pid {
                0 => (format!("idle task of CPU {cpu}"), TrackKind::Slices),
                1..=TID_MAX => (String::new(), TrackKind::Thread { tid: pid }),
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
