//! Reads and writes the compressed description of a trace. A description is at the head of every file, and
//! also at the end of recordings.

use std::io::{self, Read};

use super::format::{DESCRIPTION_BYTES_MAX, DescriptionHeader};
use crate::{info::TraceInfo, input::Seekable};

/// Compresses a description. Returns the compressed bytes and their header.
pub(super) fn pack(info: &TraceInfo, level: i32) -> io::Result<(DescriptionHeader, Vec<u8>)> {
    let json = serde_json::to_vec(info).map_err(io::Error::other)?;
    if json.len() > DESCRIPTION_BYTES_MAX {
        return Err(io::Error::other("the trace's description is larger than 64 MiB"));
    }
    let stored = zstd::bulk::compress(&json, level)?;
    let header = DescriptionHeader {
        stored_bytes: stored.len() as u32,
        raw_bytes: json.len() as u32,
        crc: crc32fast::hash(&stored),
    };
    Ok((header, stored))
}

/// The reason why a description cannot be read.
pub(super) enum Unreadable {
    /// The system reported an error.
    Io(io::Error),
    /// The data of the description is malformed.
    Damaged(String),
}

/// Reads a description. The header of the description was read just before.
pub(super) fn read(file: &mut Box<dyn Seekable>, header: DescriptionHeader) -> Result<TraceInfo, Unreadable> {
    let damaged = |problem: &str| Err(Unreadable::Damaged(problem.to_owned()));
    let raw_bytes = header.raw_bytes as usize;
    if header.stored_bytes as usize > DESCRIPTION_BYTES_MAX || raw_bytes > DESCRIPTION_BYTES_MAX {
        return damaged("the description is larger than 64 MiB");
    }
    // `take` bounds the read, so a false length takes no more memory than the file has bytes.
    let mut stored = Vec::new();
    file.by_ref().take(u64::from(header.stored_bytes)).read_to_end(&mut stored).map_err(Unreadable::Io)?;
    if stored.len() != header.stored_bytes as usize {
        return damaged("the file ends within the description");
    }
    if crc32fast::hash(&stored) != header.crc {
        return damaged("the description's checksum is wrong");
    }
    let mut json = Vec::new();
    let unpacked = zstd::stream::read::Decoder::with_buffer(stored.as_slice())
        .and_then(|decoder| decoder.take(raw_bytes as u64 + 1).read_to_end(&mut json));
    if unpacked.is_err() {
        return damaged("the description cannot be unpacked");
    }
    if json.len() != raw_bytes {
        return damaged("the unpacked description does not have the length that its header says");
    }
    serde_json::from_slice(&json)
        .map_err(|error| Unreadable::Damaged(format!("the description is malformed: {error}")))
}
