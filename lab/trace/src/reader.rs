//! The interface of the readers of all formats.

use crate::{
    amount::Amount,
    error::TraceError,
    event::Event,
    info::{LostEvents, TraceInfo},
};

/// Maximum number of events per block. A block of this size takes 2 MiB, which fit into a level-2 cache.
pub const BLOCK_EVENTS_MAX: usize = 64 << 10;

/// A trace that is read from its first to its last event, in bounded memory.
pub trait TraceReader: Send {
    /// The trace's information about itself.
    fn info(&self) -> &TraceInfo;

    /// The size of the trace, and how much of the trace was read. To show progress, call this function before
    /// the first read, and keep the [`Amount`].
    fn amount(&self) -> Amount {
        Amount::events(self.info().events)
    }

    /// Replaces the contents of `events` by the next events, at most [`BLOCK_EVENTS_MAX`], and returns their
    /// number. At the end of the trace, the number is 0. The memory of `events` is reused.
    ///
    /// # Errors
    /// An error if the trace is damaged or cannot be read. A further read after an error returns the end or
    /// the error again.
    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError>;

    /// Whether one of the remaining events is a tick ([`Event::is_tick`]). Looks ahead as far as needed, in
    /// bounded memory. A call of `has_ticks` does not change what the next read returns.
    /// [`TraceReader::lost`] includes losses met while looking ahead. Formats other than `.pgtrace` can be
    /// read only once, so their events before the first tick wait in memory or in a temporary file.
    /// `progress` is called from time to time.
    ///
    /// # Errors
    /// The errors of reading all events.
    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError>;

    /// Events that are missing or could not be used, so far.
    fn lost(&self) -> LostEvents;

    /// Moves to the first event at or after `ts_ns`. Only readers of files with an index can move to a time.
    ///
    /// # Errors
    /// An error if this format can only be read from the beginning, or if the trace is damaged.
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

    fn amount(&self) -> Amount {
        (**self).amount()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        (**self).read_block(events)
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        (**self).has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        (**self).lost()
    }

    fn seek_ns(&mut self, ts_ns: u64) -> Result<(), TraceError> {
        (**self).seek_ns(ts_ns)
    }
}
