//! Reads the parts of a file before and after its records.
//!
//! The file header names three parts: the events' attributes, the records, and a list of further parts behind
//! the records. The list has an entry for each bit that is set in the file header.

use std::{
    io::{BufReader, Seek as _, SeekFrom},
    ops::Range,
    path::Path,
};

use super::{MAGIC, REMEDY, sample::SampleFormats};
use crate::{
    damage::Strictness,
    error::TraceError,
    import::{bytes::Bytes, tracing_data::TracingData},
    input::Seekable,
};

/// Maximum number of events. A kernel has about two thousand tracepoints.
const EVENTS_MAX: u64 = 1 << 13;
/// Maximum number of event ids. A file has one id for each event and CPU.
const IDS_MAX: u64 = 1 << 20;
/// Number of bytes of the file header that are read: magic, two sizes, three parts, four words of bits.
const HEAD_BYTES: u64 = 104;
/// Offset of an attribute's word with the list of fields that samples have.
const SAMPLE_TYPE_AT: usize = 24;
/// Maximum bytes of a text. The longest text of the head is a kernel's name.
const TEXT_BYTES_MAX: u32 = 4096;

/// Bits of the further parts.
mod part {
    pub(super) const TRACING_DATA: u32 = 1;
    pub(super) const OS_RELEASE: u32 = 4;
    pub(super) const NR_CPUS: u32 = 7;
}

type File = BufReader<Box<dyn Seekable>>;

/// The data known before the first record is read.
pub(super) struct Head {
    pub(super) kernel: Option<String>,
    pub(super) cpus: Option<u32>,
    pub(super) described: TracingData,
    pub(super) formats: SampleFormats,
    /// The range of the records in the file, in bytes.
    pub(super) records: Range<u64>,
    /// Whether the file was cut after its events' descriptions, and is read leniently.
    pub(super) is_cut: bool,
}

/// A part of the file.
#[derive(Clone, Copy)]
struct Part {
    offset: u64,
    bytes: u64,
}

impl Part {
    fn read<R: std::io::BufRead>(bytes: &mut Bytes<R>) -> Result<Self, TraceError> {
        Ok(Self { offset: bytes.u64()?, bytes: bytes.u64()? })
    }
}

impl Head {
    /// Reads everything but the records. If the file was cut behind the events' descriptions, lenient reading
    /// goes on without the missing parts, and strict reading returns an error.
    pub(super) fn read(path: &Path, file: &mut File, strictness: Strictness) -> Result<Self, TraceError> {
        let refused = |problem: &str| TraceError::file(path, problem, REMEDY);
        let file_bytes =
            file.seek(SeekFrom::End(0)).map_err(|error| TraceError::io(path, "find the end of", error))?;
        let mut bytes = at(path, file, 0)?;
        if bytes.blob(8)? != MAGIC {
            return Err(refused("comes from a machine with the other byte order"));
        }
        if bytes.u64()? < HEAD_BYTES {
            return Err(refused("was written to a pipe, as a stream"));
        }
        let attribute_bytes = bytes.u64()?;
        let (attributes, data) = (Part::read(&mut bytes)?, Part::read(&mut bytes)?);
        let _event_types = Part::read(&mut bytes)?;
        let parts_there = bytes.u64()?;
        let end = data.offset.checked_add(data.bytes).filter(|end| *end <= file_bytes);
        let Some(end) = end.filter(|_| data.bytes > 0) else {
            let problem = "is truncated, or its recording was not ended";
            return Err(TraceError::file(
                path,
                problem,
                "copy it again, or record again, and end perf by Ctrl-C; the end of the file describes its events, so \
                 nothing can be read without it",
            ));
        };

        let formats = formats(path, file, attributes, attribute_bytes)?;
        let mut head = Self {
            kernel: None,
            cpus: None,
            described: TracingData::default(),
            formats,
            records: data.offset..end,
            is_cut: false,
        };
        let there = (0..u64::BITS).filter(|bit| parts_there >> bit & 1 != 0);
        let mut bytes = at(path, file, end)?;
        let parts: Result<Vec<_>, _> = there.map(|bit| Ok((bit, Part::read(&mut bytes)?))).collect();
        for (bit, part) in parts? {
            match head.note(path, file, bit, part) {
                // perf describes the events in the first of these parts.
                Err(_) if strictness == Strictness::Lenient && head.described.has_events() => {
                    head.is_cut = true
                }
                noted => noted?,
            }
        }
        Ok(head)
    }

    fn note(&mut self, path: &Path, file: &mut File, bit: u32, part: Part) -> Result<(), TraceError> {
        match bit {
            part::TRACING_DATA => {
                let mut bytes = at(path, file, part.offset)?;
                bytes.expect(b"\x17\x08\x44tracing")?;
                let version = bytes.name()?;
                // Skip the byte order and the sizes of a `long` and of a page, because the file header and
                // the event descriptions also have these facts.
                bytes.skip(1 + 1 + 4)?;
                let has_tasks = version != "0.5";
                self.described.read(&mut bytes, has_tasks)?;
            }
            part::OS_RELEASE => {
                let mut bytes = at(path, file, part.offset)?;
                let text_bytes = bytes.u32()?.min(TEXT_BYTES_MAX);
                let text = bytes.text(text_bytes.into())?;
                self.kernel = text.split('\0').next().map(str::to_owned);
            }
            part::NR_CPUS => self.cpus = Some(at(path, file, part.offset)?.u32()?),
            _ => {}
        }
        Ok(())
    }
}

fn at<'file>(path: &Path, file: &'file mut File, offset: u64) -> Result<Bytes<&'file mut File>, TraceError> {
    file.seek(SeekFrom::Start(offset)).map_err(|error| TraceError::io(path, "seek in", error))?;
    Ok(Bytes::new(path, offset, file))
}

/// Reads the fields that each event requests for its samples. The last part of an attribute gives the place
/// of the event's ids.
fn formats(
    path: &Path,
    file: &mut File,
    attributes: Part,
    attribute_bytes: u64,
) -> Result<SampleFormats, TraceError> {
    let mut bytes = at(path, file, attributes.offset)?;
    let count = attributes.bytes.checked_div(attribute_bytes).filter(|count| *count <= EVENTS_MAX);
    let own_bytes = attribute_bytes.checked_sub(16).filter(|bytes| (32..=4096).contains(bytes));
    let (Some(count), Some(own_bytes)) = (count, own_bytes) else {
        return Err(bytes.error("the attributes of events have impossible lengths"));
    };
    let mut events = Vec::new();
    for _ in 0..count {
        let attribute = bytes.blob(own_bytes)?;
        let asked = attribute.get(SAMPLE_TYPE_AT..).and_then(|rest| rest.first_chunk().copied());
        events.push((u64::from_ne_bytes(asked.unwrap_or_default()), Part::read(&mut bytes)?));
    }
    let mut all_ids = 0_u64;
    let mut with_ids = Vec::new();
    for (asked, ids) in events {
        let count = ids.bytes / 8;
        all_ids = all_ids.saturating_add(count);
        let mut bytes = at(path, file, ids.offset)?;
        if all_ids > IDS_MAX {
            return Err(bytes.error("events have too many ids"));
        }
        let ids: Result<Vec<_>, _> = (0..count).map(|_| bytes.u64()).collect();
        with_ids.push((asked, ids?));
    }
    SampleFormats::new(&with_ids)
        .map_err(|problem| TraceError::file(path, format!("cannot be read: {problem}"), REMEDY))
}
