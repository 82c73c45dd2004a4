//! Stores events that will be read again: in a native file in memory, or in an unlinked temporary file if
//! there are many events.

use std::io;

use tempfile::{SpooledTempFile, spooled_tempfile};

use super::{NativeReader, NativeWriter, WriteOptions};
use crate::{
    damage::Recovery,
    error::TraceError,
    event::Event,
    info::{LostEvents, TraceInfo},
};

/// Maximum number of bytes in memory, which hold about a million events.
const MEMORY_BYTES_MAX: usize = 4 << 20;

/// Collects events that will be read again.
pub(crate) struct Spool(NativeWriter<SpooledTempFile>);

impl Spool {
    pub(crate) fn new() -> Result<Self, TraceError> {
        let file = spooled_tempfile(MEMORY_BYTES_MAX);
        let options = WriteOptions::new().level(1);
        NativeWriter::new(file, &TraceInfo::default(), options).map(Self).map_err(refused)
    }

    pub(crate) fn write(&mut self, events: &[Event]) -> Result<(), TraceError> {
        self.0.write(events).map_err(refused)
    }

    /// Returns a reader of the events, in the order of their writing.
    pub(crate) fn into_reader(self) -> Result<NativeReader, TraceError> {
        let (mut file, _) = self.0.finish(LostEvents::default()).map_err(refused)?;
        io::Seek::rewind(&mut file).map_err(refused)?;
        NativeReader::new(&std::env::temp_dir(), Box::new(file), Recovery::Refuse)
    }
}

fn refused(error: io::Error) -> TraceError {
    TraceError::io(&std::env::temp_dir(), "write the events looked at ahead to a file in", error)
}
