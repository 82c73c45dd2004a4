//! Groups the events of a source into blocks. A reader of blocks can also look for ticks in events that the
//! caller has not read yet.

use crate::{
    amount::Amount,
    error::TraceError,
    event::Event,
    info::{LostEvents, TraceInfo},
    native::{NativeReader, Spool},
    reader::{BLOCK_EVENTS_MAX, TraceReader},
};

/// A source that delivers the events of a format one by one.
pub(super) trait EventSource: Send {
    /// The trace's information about itself.
    fn info(&self) -> &TraceInfo;

    /// The size of the source, and how much of the source was read.
    fn amount(&self) -> Amount;

    /// The next event, or `None` at the end. Callers do not call this function again after the end or an
    /// error.
    fn next_event(&mut self) -> Result<Option<Event>, TraceError>;

    /// Events that are missing or could not be used, so far.
    fn lost(&self) -> LostEvents;
}

/// Reads a source in blocks. A source can be read only once.
pub(super) struct Blocks<S> {
    source: S,
    /// Events that were read to look for a tick, before the caller asked for them.
    ahead: Option<NativeReader>,
    is_at_end: bool,
}

impl<S: EventSource> Blocks<S> {
    pub(super) const fn new(source: S) -> Self {
        Self { source, ahead: None, is_at_end: false }
    }
}

impl<S: EventSource> TraceReader for Blocks<S> {
    fn info(&self) -> &TraceInfo {
        self.source.info()
    }

    fn amount(&self) -> Amount {
        self.source.amount()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        if let Some(ahead) = &mut self.ahead {
            if ahead.read_block(events)? > 0 {
                return Ok(events.len());
            }
            self.ahead = None;
        }
        events.clear();
        while !self.is_at_end && events.len() < BLOCK_EVENTS_MAX {
            match self.source.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => self.is_at_end = true,
                Err(error) => {
                    self.is_at_end = true;
                    events.clear();
                    return Err(error);
                }
            }
        }
        Ok(events.len())
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        if let Some(ahead) = &mut self.ahead
            && ahead.has_ticks(progress)?
        {
            return Ok(true);
        }
        let mut spool = Spool::new()?;
        let (mut events, mut found) = (Vec::new(), false);
        while !found && self.read_block(&mut events)? > 0 {
            spool.write(&events)?;
            found = events.iter().any(Event::is_tick);
            progress();
        }
        self.ahead = Some(spool.into_reader()?);
        Ok(found)
    }

    fn lost(&self) -> LostEvents {
        self.source.lost()
    }
}
