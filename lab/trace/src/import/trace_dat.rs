//! Reads files of `trace-cmd record` and `trace-cmd extract`, versions 6 and 7.
//!
//! `version_6` and `version_7` find the event descriptions and the rings. `options` reads the options of both
//! versions. Times are in the recording's clock. Options about other clocks are ignored, because they only
//! help to compare machines.
//!
//! Source: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5).

mod options;
mod version_6;
mod version_7;

use std::{io::BufReader, path::Path};

use super::{
    blocks::{Blocks, EventSource},
    bytes::{Bytes, quoted},
    rings::{Place, Rings},
    tracing_data::TracingData,
};
use crate::{
    amount::Amount,
    damage::Strictness,
    error::TraceError,
    event::Event,
    info::{LostEvents, TraceInfo},
    input::Seekable,
    reader::TraceReader,
};
use options::Options;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Remedy for a file that only trace-cmd itself can read.
const REMEDY: &str = "run `trace-cmd report` on it, and read that";
/// Maximum number of rings. The largest CPU number in a file is 65535.
const CPUS_MAX: u32 = 1 << 16;

/// Whether `head` begins like a file of trace-cmd.
pub(crate) fn looks_trace_dat(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Reads everything before the first event.
pub(crate) fn open_trace_dat(
    mut info: TraceInfo,
    file: Box<dyn Seekable>,
    strictness: Strictness,
    spool_bytes_max: u64,
) -> Result<Box<dyn TraceReader>, TraceError> {
    let path = info.path.clone();
    let mut bytes = Bytes::new(&path, 0, BufReader::new(file));
    bytes.expect(MAGIC)?;
    let version = bytes.name()?;
    if bytes.u8()? != u8::from(cfg!(target_endian = "big")) {
        return Err(TraceError::file(&path, "comes from a machine with the other byte order", REMEDY));
    }
    // Skip the sizes of a user-space `long` and of the machine's pages. The event descriptions have the sizes
    // that the kernel uses.
    bytes.skip(1 + 4)?;
    let contents = match version.as_str() {
        "6" => version_6::read(&path, bytes)?,
        "7" => version_7::read(&path, bytes, spool_bytes_max)?,
        _ => {
            return Err(TraceError::file(
                &path,
                format!("has the unknown version {}", quoted(&version)),
                REMEDY,
            ));
        }
    };
    contents.options.describe(&mut info);
    let parts = contents.described.finish(&path)?;
    let rings = Rings::new(&path, contents.file, &contents.places, parts, strictness)?;
    Ok(Box::new(Blocks::new(TraceDat { info, rings })))
}

/// The contents that files of both versions have.
struct Contents {
    described: TracingData,
    options: Options,
    /// The rings of the only buffer with events.
    places: Vec<Place>,
    /// The file that contains the rings.
    file: Box<dyn Seekable>,
}

/// Returns the only buffer with events. A file with several such buffers is refused, because the buffers may
/// contain the same events.
fn only_filled(path: &Path, buffers: Vec<Vec<Place>>) -> Result<Vec<Place>, TraceError> {
    let mut filled = buffers.into_iter().filter(|places| places.iter().any(|place| place.bytes > 0));
    let first = filled.next().unwrap_or_default();
    if filled.next().is_some() {
        let problem = "has several instances with events, and two of them may have the same events";
        return Err(TraceError::file(path, problem, "record one instance at a time"));
    }
    Ok(first)
}

/// Reads the rings of a file.
struct TraceDat {
    info: TraceInfo,
    rings: Rings,
}

impl EventSource for TraceDat {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn amount(&self) -> Amount {
        self.rings.amount.clone()
    }

    fn next_event(&mut self) -> Result<Option<Event>, TraceError> {
        self.rings.next_event()
    }

    /// The kernel's counter includes every overwritten event. If the counter exceeds the sum of the known
    /// gaps, the excess is the number of events in the gaps of unknown size. If the counter exceeds the known
    /// gaps, the gaps of unknown size are not counted separately.
    fn lost(&self) -> LostEvents {
        let (known, found) = (self.info.lost, self.rings.losses);
        let are_explained = known.overrun > found.counted;
        let unexplained = if are_explained { 0 } else { found.gaps_of_unknown_size };
        LostEvents {
            overrun: known.overrun.max(found.counted),
            gaps_of_unknown_size: known.gaps_of_unknown_size.saturating_add(unexplained),
            unknown_events: known.unknown_events.saturating_add(found.unknown_events),
            out_of_order: known.out_of_order.saturating_add(found.out_of_order),
            ..known
        }
    }
}
