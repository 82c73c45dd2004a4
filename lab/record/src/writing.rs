//! The writing thread. This thread compresses and writes events while the reading thread reads the next
//! events.

use std::{
    io::{self, Write},
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use pageset_trace::{Event, LostEvents, NativeWriter, TraceInfo, WriteOptions};

/// Time after which the current block is written even if it is not full. If the recorder is killed, the trace
/// lacks the events of about the last one or two seconds.
const FLUSH: Duration = Duration::from_secs(1);
/// Compression level of zstd. Compression must keep up with the events that the kernel writes. Level 9, which
/// `convert` uses, makes files slightly smaller.
const LEVEL: i32 = 1;

/// A message to the writing thread.
pub(crate) enum Piece {
    /// The next events, by time.
    Events(Vec<Event>),
    /// The end of the events, with the description.
    End(Box<TraceInfo>, LostEvents),
}

/// Writes all pieces until the end, and returns the trace's size in bytes. During writing, `bytes` receives
/// the current size.
///
/// # Errors
/// An error if `out` cannot be written.
pub(crate) fn write(
    out: impl Write,
    head: &TraceInfo,
    pieces: &Receiver<Piece>,
    bytes: &AtomicU64,
) -> io::Result<u64> {
    let out = Counted { out, bytes };
    let mut writer = NativeWriter::provisional(out, head, WriteOptions::new().level(LEVEL))?;
    let mut flushed = Instant::now();
    loop {
        match pieces.recv_timeout(FLUSH) {
            Ok(Piece::Events(events)) => writer.write(&events)?,
            Ok(Piece::End(info, lost)) => return Ok(writer.finish_with(&info, lost)?.1),
            Err(RecvTimeoutError::Timeout) => {}
            // The reading thread has failed, and reports its own error. The trace so far stays readable.
            Err(RecvTimeoutError::Disconnected) => {
                writer.flush()?;
                return Ok(bytes.load(Ordering::Relaxed));
            }
        }
        if flushed.elapsed() >= FLUSH {
            writer.flush()?;
            flushed = Instant::now();
        }
    }
}

/// Counts the bytes written.
struct Counted<'a, W> {
    out: W,
    bytes: &'a AtomicU64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.out.write(data)?;
        self.bytes.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use pageset_trace::EventKind;

    use super::*;

    #[test]
    fn what_was_given_before_the_other_side_failed_is_written() {
        let (sender, receiver) = sync_channel(2);
        sender.send(Piece::Events(vec![Event::new(EventKind::MmPageFree, 1, 0)])).unwrap();
        drop(sender);
        let (mut out, bytes) = (Vec::new(), AtomicU64::new(0));
        let size = write(&mut out, &TraceInfo::default(), &receiver, &bytes).unwrap();
        assert_eq!((size, out.windows(4).filter(|part| part == b"PGBK").count()), (out.len() as u64, 1));
    }
}
