//! Reads the parts of a file before and after its records.
//!
//! The file header names three parts: the events' attributes, the records, and a list of further parts behind
//! the records. The list has an entry for each bit that is set in the file header.

use std::{
    io::{Seek as _, SeekFrom},
    ops::Range,
    path::Path,
};

use super::{File, MAGIC, REMEDY, at, sample::SampleFormats, shapes};
use crate::{
    damage::Strictness,
    error::TraceError,
    import::{bytes::Bytes, tracing_data::TracingData},
    raw::Decoder,
};

/// Maximum number of events. A kernel has about two thousand tracepoints.
const EVENTS_MAX: u64 = 1 << 13;
/// Maximum number of event ids. A file has one id for each event and CPU.
const IDS_MAX: u64 = 1 << 20;
/// Number of bytes of the file header that are read: magic, two sizes, three parts, four words of bits.
const HEAD_BYTES: u64 = 104;
/// Offset of an attribute's word with the list of fields that samples have.
const SAMPLE_TYPE_AT: usize = 24;
/// Offset of the word with a tracepoint's id.
const CONFIG_AT: usize = 8;
/// The type of an attribute that is a tracepoint.
const TRACEPOINT: u32 = 2;
/// Note for a file that was cut after its events' descriptions.
const CUT_BEHIND_DESCRIPTIONS: &str =
    "what the end of the file says, such as the kernel's release: the file is cut, but all events are there";
/// Note for a file that was cut before its events' descriptions.
const CUT_BEFORE_DESCRIPTIONS: &str =
    "events other than page events: the file is cut before its end, where perf describes the events";
/// Assumption about a file that was cut before its events' descriptions.
const SHAPES: &str = "the lengths and ids of samples show which page events they are, because the file is cut before its \
                      end, where perf describes the events";
/// Maximum bytes of a text. The longest text of the head is a kernel's name.
const TEXT_BYTES_MAX: u32 = 4096;

/// Bits of the further parts.
mod part {
    pub(super) const TRACING_DATA: u32 = 1;
    pub(super) const OS_RELEASE: u32 = 4;
    pub(super) const NR_CPUS: u32 = 7;
}

/// The data known before the first record is read.
pub(super) struct Head {
    pub(super) kernel: Option<String>,
    pub(super) cpus: Option<u32>,
    pub(super) formats: SampleFormats,
    pub(super) decoder: Decoder,
    /// The names of the recorded events.
    pub(super) recorded: Vec<String>,
    /// Whether the file shows the work items that are ticks.
    pub(super) names_ticks: bool,
    /// The range of the records in the file, in bytes.
    pub(super) records: Range<u64>,
    /// The parts that a cut file lacks.
    pub(super) missing: Vec<String>,
    /// What is assumed about a cut file.
    pub(super) assumed: Option<String>,
    /// Whether samples are missing at the cut.
    pub(super) lacks_samples: bool,
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

/// The parts of the file behind the records, as far as they were read.
#[derive(Default)]
struct Behind {
    described: TracingData,
    kernel: Option<String>,
    cpus: Option<u32>,
    /// Whether a part is missing, and the file is read leniently.
    is_cut: bool,
}

impl Head {
    /// Reads everything but the records. Strict reading of a cut file returns an error. Lenient reading goes
    /// on without the missing parts.
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
        // perf writes the length of the data when it ends.
        let end = data.offset.checked_add(data.bytes).filter(|end| *end <= file_bytes && data.bytes > 0);
        let is_lenient = strictness == Strictness::Lenient;
        if end.is_none() && !is_lenient {
            let remedy =
                "copy it again, or record again and end perf by Ctrl-C, or read leniently up to the cut";
            return Err(TraceError::file(path, "is truncated, or its recording was not ended", remedy));
        }

        let (formats, ids) = formats(path, file, attributes, attribute_bytes)?;
        let Some(end) = end else {
            let samples = data.offset..file_bytes.max(data.offset);
            let found = shapes::find(path, file, samples.clone(), &formats, &ids)?;
            let problem =
                "is cut among its samples, and they do not show which events are allocations and frees";
            let remedy = "copy it again, or record again and end perf by Ctrl-C";
            let found = found.ok_or_else(|| TraceError::file(path, problem, remedy))?;
            let (cut, end) = (found.end, samples.end);
            let mut head = Self::without_descriptions(formats, found, samples);
            head.missing
                .push(format!("events after byte {cut} of the file's {end} bytes: the file is cut there"));
            head.lacks_samples = true;
            return Ok(head);
        };
        let records = data.offset..end;
        let mut behind = Behind::default();
        match behind.read(path, file, end, parts_there, is_lenient) {
            Err(error) if is_lenient && !behind.described.has_events() => {
                let found = shapes::find(path, file, records.clone(), &formats, &ids)?;
                return found.map(|found| Self::without_descriptions(formats, found, records)).ok_or(error);
            }
            read => read?,
        }
        let recorded = behind.described.names();
        let names_ticks = behind.described.names_ticks();
        Ok(Self {
            kernel: behind.kernel,
            cpus: behind.cpus,
            formats,
            decoder: behind.described.finish(path)?.1,
            recorded,
            names_ticks,
            records,
            missing: behind.is_cut.then(|| CUT_BEHIND_DESCRIPTIONS.to_owned()).into_iter().collect(),
            assumed: None,
            lacks_samples: false,
        })
    }

    /// The head of a file that was cut before the descriptions of its events.
    fn without_descriptions(formats: SampleFormats, found: shapes::Found, records: Range<u64>) -> Self {
        Self {
            kernel: None,
            cpus: None,
            formats,
            decoder: found.decoder,
            recorded: found.names,
            names_ticks: false,
            records: records.start..found.end,
            missing: vec![CUT_BEFORE_DESCRIPTIONS.to_owned()],
            assumed: Some(SHAPES.to_owned()),
            lacks_samples: false,
        }
    }
}

impl Behind {
    /// Reads the list of parts at `end`, and the parts. If the file was cut behind the events' descriptions,
    /// lenient reading leaves out the missing parts.
    fn read(
        &mut self,
        path: &Path,
        file: &mut File,
        end: u64,
        parts_there: u64,
        is_lenient: bool,
    ) -> Result<(), TraceError> {
        let there = (0..u64::BITS).filter(|bit| parts_there >> bit & 1 != 0);
        let mut bytes = at(path, file, end)?;
        let parts: Result<Vec<_>, _> = there.map(|bit| Ok((bit, Part::read(&mut bytes)?))).collect();
        for (bit, part) in parts? {
            match self.note(path, file, bit, part) {
                // perf describes the events in the first of these parts.
                Err(_) if is_lenient && self.described.has_events() => self.is_cut = true,
                noted => noted?,
            }
        }
        Ok(())
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

/// Reads the fields that each event requests for its samples. The last part of an attribute gives the place
/// of the event's ids. Also returns the ids of the tracepoints.
fn formats(
    path: &Path,
    file: &mut File,
    attributes: Part,
    attribute_bytes: u64,
) -> Result<(SampleFormats, Vec<u64>), TraceError> {
    let mut bytes = at(path, file, attributes.offset)?;
    let count = attributes.bytes.checked_div(attribute_bytes).filter(|count| *count <= EVENTS_MAX);
    let own_bytes = attribute_bytes.checked_sub(16).filter(|bytes| (32..=4096).contains(bytes));
    let (Some(count), Some(own_bytes)) = (count, own_bytes) else {
        return Err(bytes.error("the attributes of events have impossible lengths"));
    };
    let (mut events, mut tracepoints) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let attribute = bytes.blob(own_bytes)?;
        if attribute.first_chunk().copied().map(u32::from_ne_bytes) == Some(TRACEPOINT) {
            let id = attribute.get(CONFIG_AT..).and_then(|rest| rest.first_chunk().copied());
            tracepoints.extend(id.map(u64::from_ne_bytes));
        }
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
    let formats = SampleFormats::new(&with_ids);
    formats
        .map(|formats| (formats, tracepoints))
        .map_err(|problem| TraceError::file(path, format!("cannot be read: {problem}"), REMEDY))
}
