//! Reads version 6. All parts of the file are in a fixed order, and each ring is one part.

use std::{
    io::{BufRead, BufReader, Seek, SeekFrom},
    path::Path,
};

use super::{
    CPUS_MAX, Contents, REMEDY, only_filled,
    options::{Options, id},
};
use crate::{
    error::TraceError,
    import::{bytes::Bytes, rings::Place, tracing_data::TracingData},
    input::Seekable,
};

/// Maximum bytes of the text that names the clock. The text ends with zero bytes.
const CLOCK_BYTES_MAX: u64 = 1 << 12;
/// Maximum number of tracing instances, not counting the first instance.
const BUFFERS_MAX: usize = 1 << 10;

pub(super) fn read(
    path: &Path,
    mut bytes: Bytes<BufReader<Box<dyn Seekable>>>,
) -> Result<Contents, TraceError> {
    let mut described = TracingData::default();
    described.read(&mut bytes, true)?;
    let cpus = bytes.u32()?;
    let mut options = Options::default();
    let mut buffers = Vec::new();
    let mut kind = bytes.blob(10)?;
    if kind == b"options  \0" {
        loop {
            let option = bytes.u16()?;
            if option == id::DONE {
                break;
            }
            let option_bytes = bytes.u32()?;
            let data = bytes.blob(option_bytes.into())?;
            match option {
                // The option has the offset of the buffer's rings, and after it the buffer's name.
                id::BUFFER if buffers.len() < BUFFERS_MAX => buffers.extend(data.first_chunk().copied()),
                id::BUFFER => return Err(bytes.error("there are too many instances")),
                _ => options.note(option, &data),
            }
        }
        kind = bytes.blob(10)?;
    }
    let first = rings(path, &mut bytes, &kind, cpus)?;
    let clock_bytes = bytes.u64().unwrap_or(0);
    let clock = if clock_bytes > CLOCK_BYTES_MAX { String::new() } else { bytes.text(clock_bytes)? };
    let clock = Some(clock.trim_matches('\0')).filter(|clock| !clock.is_empty());
    options.check_clock(path, clock)?;

    let mut file = bytes.into_source();
    let mut places = vec![first];
    for offset in buffers.into_iter().map(u64::from_ne_bytes) {
        file.seek(SeekFrom::Start(offset)).map_err(|error| TraceError::io(path, "seek in", error))?;
        let mut bytes = Bytes::new(path, offset, &mut file);
        let kind = bytes.blob(10)?;
        places.push(rings(path, &mut bytes, &kind, cpus)?);
    }
    Ok(Contents { described, options, places: only_filled(path, places)?, file: file.into_inner() })
}

/// Reads the rings of a tracing instance. `kind` shows how the instance was recorded.
fn rings<R: BufRead>(
    path: &Path,
    bytes: &mut Bytes<R>,
    kind: &[u8],
    cpus: u32,
) -> Result<Vec<Place>, TraceError> {
    match kind {
        b"flyrecord\0" if cpus <= CPUS_MAX => {}
        b"latency  \0" => {
            return Err(TraceError::file(path, "contains text of a latency tracer, not events", REMEDY));
        }
        _ => return Err(bytes.error("the file has no rings of CPUs")),
    }
    let place = |cpu| Ok(Place { cpu: cpu as u16, offset: bytes.u64()?, bytes: bytes.u64()? });
    let places: Result<Vec<_>, TraceError> = (0..cpus).map(place).collect();
    Ok(places?.into_iter().filter(|place| place.bytes > 0).collect())
}
