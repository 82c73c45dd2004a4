//! Converts any readable trace to a native file.

use std::io::Write;

use crate::{
    error::TraceError,
    info::LostEvents,
    native::{NativeWriter, WriteOptions},
    reader::TraceReader,
};

/// The `action` of [`TraceError::Io`] for a failed write of the native file. Any other `action` means that
/// reading the trace failed.
pub const CONVERT_WRITES: &str = "write the native file of";

/// The result of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvertSummary {
    /// Number of events written.
    pub events: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Events that were missing or could not be used.
    pub lost: LostEvents,
}

/// Writes the remaining events of `reader`, and the trace's information, to `out`. Only one block is in
/// memory at a time. After each block, `progress` receives the number of events written so far.
///
/// # Errors
/// An error if the trace is damaged, or if `out` cannot be written.
pub fn convert(
    reader: &mut dyn TraceReader,
    out: impl Write,
    options: WriteOptions,
    mut progress: impl FnMut(u64),
) -> Result<ConvertSummary, TraceError> {
    let path = reader.info().path.clone();
    let refused = |error| TraceError::io(&path, CONVERT_WRITES, error);
    let mut info = reader.info().clone();
    // The number of events is not known yet. The index at the file's end will contain the number.
    info.events = None;
    info.lost = LostEvents::default();
    let mut writer = NativeWriter::new(out, &info, options).map_err(refused)?;
    let mut events = Vec::new();
    let mut written = 0;
    while reader.read_block(&mut events)? > 0 {
        writer.write(&events).map_err(refused)?;
        written += events.len() as u64;
        progress(written);
    }
    let lost = reader.lost();
    let (_, bytes) = writer.finish(lost).map_err(refused)?;
    Ok(ConvertSummary { events: written, bytes, lost })
}
