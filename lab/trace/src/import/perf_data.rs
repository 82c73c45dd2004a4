//! Reads files of `perf record` (`perf.data`).
//!
//! `head` reads the file's description and finds its records. `sample` finds the time, the CPU and the
//! kernel's record in a sample. `rounds` sorts the samples. `buffer` reads the records, and `shapes` finds
//! the page events in a file that was cut before its end. The modules of this importer use no library and
//! read only a few kinds of records. A false length in a file can therefore neither exhaust memory nor
//! overflow.
//!
//! Sources: perf_event_open(2) for records, attributes and samples; files that perf 6.1 wrote for the file
//! header.

mod buffer;
mod head;
mod rounds;
mod sample;
mod shapes;

use std::{
    io::{BufReader, Seek as _, SeekFrom},
    path::Path,
};

use super::{
    blocks::{Blocks, EventSource},
    bytes::Bytes,
};
use crate::{
    amount::Amount,
    damage::Strictness,
    error::TraceError,
    event::Event,
    info::{LostEvents, TraceInfo},
    input::Seekable,
    raw::{self, Decoder, Waits},
    reader::TraceReader,
};
use buffer::{Record, RecordBuffer};
use head::Head;
use rounds::Rounds;
use sample::SampleFormats;

/// Remedy for a file that only perf itself can read.
const REMEDY: &str = "run `perf script --ns -F comm,pid,tid,cpu,time,event,trace` on it, and read that";
/// The magic number of a file from a machine with this machine's byte order.
const MAGIC: [u8; 8] = 0x3245_4c49_4652_4550_u64.to_ne_bytes();
/// The magic number of a file from a machine with the opposite byte order.
const SWAPPED_MAGIC: [u8; 8] = 0x3245_4c49_4652_4550_u64.swap_bytes().to_ne_bytes();
/// Note for a file that does not name functions. Only old versions of perf copy the names from
/// `/proc/kallsyms` to the file.
const NO_TICKS: &str = "which work items are ticks: perf.data has no addresses of functions, but text of `perf script` has their names";
/// Number of bytes that are read from the file at once.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of a record's header.
const HEADING_BYTES: u16 = 8;

/// Kinds of records. The first constants are the kernel's kinds, and the constants after them are perf's
/// kinds.
mod kind {
    pub(super) const LOST: u32 = 2;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const AUX_TRACE: u32 = 71;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED_2: u32 = 83;
}

type File = BufReader<Box<dyn Seekable>>;

/// Whether `head` begins like a file of perf.
pub(crate) fn looks_perf_data(head: &[u8]) -> bool {
    head.starts_with(&MAGIC) || head.starts_with(&SWAPPED_MAGIC)
}

/// Reads everything before the first event.
pub(crate) fn open_perf_data(
    mut info: TraceInfo,
    file: Box<dyn Seekable>,
    strictness: Strictness,
) -> Result<Box<dyn TraceReader>, TraceError> {
    let path = info.path.clone();
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
    let head = Head::read(&path, &mut file, strictness)?;
    info.kernel = info.kernel.take().or(head.kernel);
    info.cpus = info.cpus.or(head.cpus);
    // perf describes every event that the user told it to record.
    if info.recorded.is_empty() {
        info.recorded = head.recorded;
    }
    if !head.names_ticks {
        info.not_recorded.push(NO_TICKS.to_owned());
    }
    info.not_recorded.extend(head.missing);
    info.assumed.extend(head.assumed);
    info.lost.gaps_of_unknown_size += u64::from(head.lacks_samples);
    file.seek(SeekFrom::Start(head.records.start))
        .map_err(|error| TraceError::io(&path, "seek in", error))?;
    let bytes = head.records.end - head.records.start;
    let records = Records {
        // The buffer of `file` is empty, because a seek discards its contents.
        records: RecordBuffer::new(path, file.into_inner(), head.records.start, bytes),
        formats: head.formats,
        decoder: head.decoder,
        waits: Waits::keeping_all(),
        strictness,
    };
    Ok(Box::new(Blocks::new(PerfData {
        info,
        records,
        rounds: Rounds::default(),
        lost: LostEvents::default(),
    })))
}

fn at<'file>(path: &Path, file: &'file mut File, offset: u64) -> Result<Bytes<&'file mut File>, TraceError> {
    file.seek(SeekFrom::Start(offset)).map_err(|error| TraceError::io(path, "seek in", error))?;
    Ok(Bytes::new(path, offset, file))
}

/// Reads the samples of a file.
struct PerfData {
    info: TraceInfo,
    records: Records,
    rounds: Rounds,
    /// Losses found while reading.
    lost: LostEvents,
}

/// The records of the file that were not read yet.
struct Records {
    records: RecordBuffer<Box<dyn Seekable>>,
    formats: SampleFormats,
    decoder: Decoder,
    waits: Waits,
    strictness: Strictness,
}

impl EventSource for PerfData {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn amount(&self) -> Amount {
        self.records.records.amount()
    }

    fn next_event(&mut self) -> Result<Option<Event>, TraceError> {
        loop {
            if let Some(event) = self.rounds.next() {
                return Ok(Some(event));
            }
            if !self.records.read_round(&mut self.rounds, &mut self.lost)? {
                return Ok(None);
            }
        }
    }

    fn lost(&self) -> LostEvents {
        let (known, found) = (self.info.lost, self.lost);
        LostEvents {
            overrun: known.overrun.saturating_add(found.overrun),
            malformed_lines: known.malformed_lines.saturating_add(found.malformed_lines),
            unknown_events: known.unknown_events.saturating_add(found.unknown_events),
            out_of_order: known.out_of_order.saturating_add(self.rounds.out_of_order),
            ..known
        }
    }
}

impl Records {
    /// Reads records up to the end of a round, or until an event need not be held back any more. At the end
    /// of a round, all events that are older than the youngest event of the previous round have been read.
    /// Returns false at the end of the file, if no event is held back. Events go directly to `rounds`,
    /// because returning each event would take longer.
    fn read_round(&mut self, rounds: &mut Rounds, lost: &mut LostEvents) -> Result<bool, TraceError> {
        while !rounds.is_ready() {
            let Some(Record { kind, body }) = self.records.next()? else {
                let is_held_back = !rounds.is_empty();
                rounds.finish();
                return Ok(is_held_back);
            };
            match kind {
                kind::SAMPLE => {
                    let Some(sample) = self.formats.sample(body) else {
                        if self.strictness == Strictness::Lenient {
                            lost.malformed_lines += 1;
                            continue;
                        }
                        let remedy = "record again, or read leniently to skip and count such samples";
                        let problem = "a sample is cut off, or has a CPU above 65535";
                        return Err(self.records.error_with(problem, remedy));
                    };
                    let record = raw::Record { ts_ns: sample.ts_ns, bytes: sample.raw };
                    match self.decoder.event(&record, sample.cpu, &mut self.waits) {
                        Some(event) => rounds.add(event),
                        None => lost.unknown_events += 1,
                    }
                }
                kind::LOST | kind::LOST_SAMPLES => {
                    // In a record of kind `LOST`, the event's number stands before the number of lost events.
                    let at = if kind == kind::LOST { 8 } else { 0 };
                    let count = body.get(at..).and_then(|rest| rest.first_chunk().copied());
                    let count = count.ok_or_else(|| self.records.error("a report of losses is cut off"))?;
                    lost.overrun = lost.overrun.saturating_add(u64::from_ne_bytes(count));
                }
                kind::FINISHED_ROUND => {
                    rounds.finish_round();
                    return Ok(true);
                }
                kind::COMPRESSED | kind::COMPRESSED_2 => return Err(self.refused("it was recorded with -z")),
                kind::AUX_TRACE => {
                    return Err(self.refused("it has data of a processor's hardware tracer"));
                }
                _ => {}
            }
        }
        Ok(true)
    }

    fn refused(&self, what: &str) -> TraceError {
        self.records.error_with(what, REMEDY)
    }
}
