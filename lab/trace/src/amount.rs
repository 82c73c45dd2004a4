//! How much of a trace was read, and how much there is to read.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How much there is to read of a trace, and how much of it was read so far. If the number of events is known
/// before the end, events are counted. If the number of events is not known before the end, bytes of the file
/// are counted. A clone stays up to date while the trace is read.
#[derive(Clone, Debug)]
pub struct Amount(Counted);

#[derive(Clone, Debug)]
enum Counted {
    Events(Option<u64>),
    Bytes { total: u64, read: Arc<AtomicU64> },
}

impl Amount {
    /// Counts events. `total` is the number of all events, if known.
    #[must_use]
    pub const fn events(total: Option<u64>) -> Self {
        Self(Counted::Events(total))
    }

    /// Counts bytes; `total` is the number of all bytes.
    pub(crate) fn bytes(total: u64) -> Self {
        Self(Counted::Bytes { total, read: Arc::default() })
    }

    /// Returns this amount unchanged if it counts bytes. If it counts events, returns an amount with `total`
    /// events. A reader that leaves out events calls this function.
    #[must_use]
    pub fn or_events(self, total: Option<u64>) -> Self {
        match self.0 {
            Counted::Events(_) => Self::events(total),
            Counted::Bytes { .. } => self,
        }
    }

    /// The unit, for a person: `events` or `bytes`.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self.0 {
            Counted::Events(_) => "events",
            Counted::Bytes { .. } => "bytes",
        }
    }

    /// The number of events or bytes in the trace, if this number is known.
    #[must_use]
    pub const fn total(&self) -> Option<u64> {
        match self.0 {
            Counted::Events(total) => total,
            Counted::Bytes { total, .. } => Some(total),
        }
    }

    /// The number of events or bytes that were read so far. `events` is the number of events that the caller
    /// has read. Bytes may be read before the caller gets their events.
    #[must_use]
    pub fn done(&self, events: u64) -> u64 {
        match &self.0 {
            Counted::Events(_) => events,
            // If the file has grown since it was opened, more than `total` bytes may have been read.
            Counted::Bytes { total, read } => read.load(Relaxed).min(*total),
        }
    }

    /// Adds bytes that were read.
    pub(crate) fn add(&self, bytes: u64) {
        if let Counted::Bytes { read, .. } = &self.0 {
            read.fetch_add(bytes, Relaxed);
        }
    }
}

/// A source whose bytes are counted when they are read.
pub(crate) struct CountingSource<R> {
    pub(crate) source: R,
    pub(crate) amount: Amount,
}

impl<R: Read> Read for CountingSource<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.amount.add(count as u64);
        Ok(count)
    }
}

impl<R: Seek> Seek for CountingSource<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_up_to_the_total() {
        let amount = Amount::bytes(4);
        let mut source = CountingSource { source: io::Cursor::new(b"abcdef"), amount: amount.clone() };
        let mut buffer = [0; 3];
        source.read_exact(&mut buffer).unwrap();
        assert_eq!((amount.unit(), amount.total(), amount.done(77)), ("bytes", Some(4), 3));
        source.read_exact(&mut buffer).unwrap();
        assert_eq!(amount.done(77), 4, "more than 100 % would be shown otherwise");
        assert_eq!(amount.or_events(Some(5)).unit(), "bytes");
    }

    #[test]
    fn events_are_counted_by_the_caller() {
        let amount = Amount::events(None).or_events(Some(5));
        amount.add(100);
        assert_eq!((amount.unit(), amount.total(), amount.done(3)), ("events", Some(5), 3));
    }
}
