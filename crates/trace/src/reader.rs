//! The one interface all formats are read through, and what a reader does with damage.

use crate::{
    error::TraceError,
    event::Event,
    info::{LostEvents, TraceInfo},
};

/// Events per block at most: 2 MiB of [`Event`]s, which stay in a level-2 cache while they are used.
pub const BLOCK_EVENTS_MAX: usize = 64 << 10;

/// What to do with a line of a known event that makes no sense, or a sample or page of a binary file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// It is an error: a replay of half-understood events would mislead.
    #[default]
    Strict,
    /// It is counted in [`LostEvents::malformed_lines`](crate::LostEvents::malformed_lines), or as a gap of unknown size, and
    /// skipped.
    Lenient,
}

/// What to do with a damaged native file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// It is an error.
    #[default]
    Refuse,
    /// Events before the first damage are delivered; the rest is counted as lost.
    UpToDamage,
}

/// A trace that is being read, in bounded memory, from its first to its last event.
pub trait TraceReader: Send {
    /// What the trace says about itself.
    fn info(&self) -> &TraceInfo;

    /// Replaces the contents of `events` by the next events, at most [`BLOCK_EVENTS_MAX`], and returns their
    /// number; 0 is the end. The allocation of `events` is reused.
    ///
    /// # Errors
    /// The trace is damaged or cannot be read. Reading on after an error gives the end or the error again.
    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError>;

    /// Whether one of the events still to be read is a tick ([`Event::is_tick`]). Looks as far ahead as it must, in
    /// bounded memory; the next block is the same as without the question. [`TraceReader::lost`] counts what was looked
    /// at. Text is read once only, so what lies before the first tick waits in a temporary file.
    ///
    /// # Errors
    /// As for reading all of it.
    fn has_ticks(&mut self) -> Result<bool, TraceError>;

    /// What is missing or could not be used, so far.
    fn lost(&self) -> LostEvents;

    /// Moves to the first event at or after `ts_ns`. Readers without an index refuse.
    ///
    /// # Errors
    /// This format cannot be entered in the middle, or the trace is damaged.
    fn seek_ns(&mut self, ts_ns: u64) -> Result<(), TraceError> {
        let info = self.info();
        Err(TraceError::file(
            &info.path,
            format!("{} has no index, cannot go to {ts_ns} ns", info.source.name()),
            "convert it to .pgtrace first",
        ))
    }
}

impl<R: TraceReader + ?Sized> TraceReader for &mut R {
    fn info(&self) -> &TraceInfo {
        (**self).info()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        (**self).read_block(events)
    }

    fn has_ticks(&mut self) -> Result<bool, TraceError> {
        (**self).has_ticks()
    }

    fn lost(&self) -> LostEvents {
        (**self).lost()
    }

    fn seek_ns(&mut self, ts_ns: u64) -> Result<(), TraceError> {
        (**self).seek_ns(ts_ns)
    }
}
