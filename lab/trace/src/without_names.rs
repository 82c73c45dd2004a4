//! Reads a trace without the names of tasks.

use crate::{
    amount::Amount,
    error::TraceError,
    event::Event,
    info::{LostEvents, TraceInfo},
    reader::TraceReader,
};

/// A reader that removes [`TraceInfo::tasks`], and changes nothing else.
pub struct WithoutNames {
    reader: Box<dyn TraceReader>,
    info: TraceInfo,
}

impl WithoutNames {
    /// Makes a reader that passes on the remaining events of `reader`.
    #[must_use]
    pub fn new(reader: Box<dyn TraceReader>) -> Self {
        let info = TraceInfo { tasks: None, ..reader.info().clone() };
        Self { reader, info }
    }
}

impl TraceReader for WithoutNames {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn amount(&self) -> Amount {
        self.reader.amount()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        self.reader.read_block(events)
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.reader.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.reader.lost()
    }
}
