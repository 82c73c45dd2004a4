//! Finds page events in a file that was cut before its end, where perf describes the events.
//!
//! The part before the cut has the events' ids and their samples. The ids of the page events follow each
//! other, up or down, in the order of `FAMILY`. The kernel's records of the page events differ in their
//! lengths, and in the values that their fields can have. `find` returns the page events only if exactly one
//! assignment of kinds to ids fits all samples.
//!
//! Sources: the descriptions of the events in the files in data/formats and on a kernel 6.18, and
//! perf_event_open(2) for the length of a record in a sample.

use std::{collections::BTreeMap, ops::Range, path::Path};

use super::{
    File, at,
    buffer::{Record, RecordBuffer},
    kind,
    sample::SampleFormats,
};
use crate::{
    error::TraceError,
    event::EventKind,
    raw::{Decoder, EventFormat, Symbols, TRACEPOINTS},
};

/// Highest possible number of a frame: addresses have 52 bits, and the smallest pages have 12.
const FRAME_MAX: u64 = 1 << 40;
/// Highest order of a block. Kernels with pages of 64 KiB have blocks of order 13.
const ORDER_MAX: u32 = 13;
/// Highest number of a migration type.
const MIGRATETYPE_MAX: u32 = 7;
/// Allocation flags above this value occur in each recording. No other field of a record of a page event is
/// as large, apart from the frame.
const SMALL_MAX: u32 = 0xff;

/// The fields at the beginning of each record.
const HEADING: &str = "field:unsigned short common_type; offset:0; size:2; signed:0;
field:unsigned char common_flags; offset:2; size:1; signed:0;
field:unsigned char common_preempt_count; offset:3; size:1; signed:0;
field:int common_pid; offset:4; size:4; signed:1;
field:unsigned long pfn; offset:8; size:8; signed:0;
";
const ORDER: &str = "field:unsigned int order; offset:16; size:4; signed:0;\n";
const MIGRATETYPE: &str = "field:int migratetype; offset:20; size:4; signed:1;\n";

/// The page events, in the order of their ids.
const FAMILY: [EventKind; 5] = [
    EventKind::MmPageFree,
    EventKind::MmPageFreeBatched,
    EventKind::MmPageAlloc,
    EventKind::MmPageAllocZoneLocked,
    EventKind::MmPagePcpuDrain,
];
/// The place of [`EventKind::MmPageAlloc`] in `FAMILY`.
const ALLOC_AT: i32 = 2;

/// The features that all records of an event have in common.
#[derive(Clone, Copy, Debug)]
struct Records {
    /// Length of a record in bytes; 0 if the records have different lengths.
    bytes: usize,
    /// Whether each record has a possible frame.
    has_frames: bool,
    /// The largest value of each word of four bytes behind the frame, from byte 16 on. A word of -1 counts
    /// as 0.
    words: [u32; 5],
}

impl Records {
    fn add(record: &[u8], before: Option<Self>) -> Self {
        let frame = record.get(8..16).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes);
        let mut words = [0; 5];
        for (word, bytes) in words.iter_mut().zip(record.get(16..).unwrap_or_default().as_chunks().0) {
            *word = u32::from_ne_bytes(*bytes).wrapping_add(1).saturating_sub(1);
        }
        let has_frames = frame.is_some_and(|frame| frame <= FRAME_MAX || frame == u64::MAX);
        let Some(before) = before else { return Self { bytes: record.len(), has_frames, words } };
        Self {
            bytes: if before.bytes == record.len() { record.len() } else { 0 },
            has_frames: before.has_frames && has_frames,
            words: std::array::from_fn(|at| before.words[at].max(words[at])),
        }
    }

    /// The fields of the records, if all of them can be events of `kind`. `None` if they cannot.
    fn fields(&self, kind: EventKind) -> Option<String> {
        let [order, second, third, _, fifth] = self.words;
        let fields = match (kind, self.bytes) {
            (EventKind::MmPageFree, 28) if second == 0 => ORDER.to_owned(),
            (EventKind::MmPageFreeBatched, 20) => String::new(),
            (EventKind::MmPageAlloc, 36) if second > SMALL_MAX && third <= MIGRATETYPE_MAX => {
                ORDER.to_owned()
                    + "field:gfp_t gfp_flags; offset:20; size:4; signed:0;
field:int migratetype; offset:24; size:4; signed:1;\n"
            }
            (EventKind::MmPageAlloc, 44) if third > SMALL_MAX && fifth <= MIGRATETYPE_MAX => {
                ORDER.to_owned()
                    + "field:unsigned long gfp_flags; offset:24; size:8; signed:0;
field:int migratetype; offset:32; size:4; signed:1;\n"
            }
            (EventKind::MmPageAllocZoneLocked | EventKind::MmPagePcpuDrain, 28)
                if second <= MIGRATETYPE_MAX =>
            {
                [ORDER, MIGRATETYPE].concat()
            }
            (EventKind::MmPageAllocZoneLocked, 36) if second <= MIGRATETYPE_MAX && third <= 1 => {
                [ORDER, MIGRATETYPE, "field:int percpu_refill; offset:24; size:4; signed:1;\n"].concat()
            }
            _ => return None,
        };
        let is_batched = kind == EventKind::MmPageFreeBatched;
        (self.has_frames && (is_batched || order <= ORDER_MAX)).then(|| HEADING.to_owned() + &fields)
    }
}

/// The page events in the part of a file before its cut.
pub(super) struct Found {
    pub(super) decoder: Decoder,
    /// The names of the page events that were recorded.
    pub(super) names: Vec<String>,
    /// Offset in bytes behind the last whole record.
    pub(super) end: u64,
}

/// Reads all records in `range` of the file, and finds the page events among the tracepoints `ids`. `None`
/// if the samples fit no assignment, or several.
pub(super) fn find(
    path: &Path,
    file: &mut File,
    range: Range<u64>,
    formats: &SampleFormats,
    ids: &[u64],
) -> Result<Option<Found>, TraceError> {
    let (by_id, end) = read(path, file, range, formats)?;
    let (mut found, mut has_several) = (None, false);
    for alloc in by_id.keys() {
        for step in [1, -1] {
            if let Some(events) = assigned(&by_id, ids, *alloc, step) {
                has_several |= found.replace(events).is_some();
            }
        }
    }
    let Some(events) = found.filter(|_| !has_several) else { return Ok(None) };
    let names = events.iter().map(|(kind, _)| kind.name().to_owned()).collect();
    let seen = events.into_iter().filter_map(|(kind, format)| {
        let tracepoint = TRACEPOINTS.into_iter().find(|known| known.kind == kind)?;
        Some((tracepoint, format?))
    });
    let decoder = Decoder::new(&seen.collect::<Vec<_>>(), Symbols::default()).ok();
    Ok(decoder.map(|decoder| Found { decoder, names, end }))
}

/// Reads the records, and returns what the records of each event have in common. Also returns the offset
/// behind the last whole record.
fn read(
    path: &Path,
    file: &mut File,
    range: Range<u64>,
    formats: &SampleFormats,
) -> Result<(BTreeMap<u16, Records>, u64), TraceError> {
    let bytes = range.end - range.start;
    let mut records =
        RecordBuffer::new(path.to_owned(), at(path, file, range.start)?.into_source(), range.start, bytes);
    let mut by_id = BTreeMap::new();
    while let Some(Record { kind, body }) = records.next_whole()? {
        if kind != kind::SAMPLE {
            continue;
        }
        let record = formats.sample(body).map(|sample| sample.raw).unwrap_or_default();
        if let Some(id) = record.first_chunk().copied().map(u16::from_ne_bytes) {
            by_id.insert(id, Records::add(record, by_id.get(&id).copied()));
        }
    }
    Ok((by_id, records.offset()))
}

/// Assigns the page events to ids. `alloc` is the id of allocations, and the ids of the following events in
/// `FAMILY` are `step` apart. The result has the format of each event that has samples. `None` if a sample
/// does not fit, or if there are no frees.
fn assigned(
    by_id: &BTreeMap<u16, Records>,
    ids: &[u64],
    alloc: u16,
    step: i32,
) -> Option<Vec<(EventKind, Option<EventFormat>)>> {
    let mut events = Vec::new();
    for (place, kind) in (0..).zip(FAMILY) {
        let Ok(id) = u16::try_from(i32::from(alloc) + (place - ALLOC_AT) * step) else { continue };
        let is_needed = matches!(kind, EventKind::MmPageAlloc | EventKind::MmPageFree);
        match by_id.get(&id) {
            Some(records) => {
                let format = EventFormat::parse(&format!("ID:{id}\n{}", records.fields(kind)?));
                events.push((kind, Some(format.ok()?)));
            }
            None if is_needed => return None,
            None if ids.contains(&u64::from(id)) => events.push((kind, None)),
            None => {}
        }
    }
    Some(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with this frame and these words behind it, as long as in a sample.
    fn record(frame: u64, words: &[u32]) -> Vec<u8> {
        let mut record = vec![0; 8];
        record.extend(frame.to_ne_bytes());
        record.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        record
    }

    /// The samples of a kernel before 5.19. The ids follow each other upwards or downwards.
    fn older_kernel(step: i32) -> BTreeMap<u16, Records> {
        let samples = [
            (-2, record(1, &[0, 0, 0])),
            (-1, record(1, &[0])),
            (0, record(1, &[2, 0xcc0, 1, 0, 0])),
            (0, record(u64::MAX, &[2, 0x820, 0, 0, 0])),
            (1, record(1, &[0, u32::MAX, 0])),
            (2, record(1, &[0, 1, 0])),
        ];
        let mut by_id: BTreeMap<u16, Records> = BTreeMap::new();
        for (place, record) in samples {
            let id = (400 + place * step) as u16;
            by_id.insert(id, Records::add(&record, by_id.get(&id).copied()));
        }
        by_id
    }

    fn kinds(by_id: &BTreeMap<u16, Records>, step: i32) -> Option<Vec<EventKind>> {
        assigned(by_id, &[], 400, step).map(|events| events.into_iter().map(|(kind, _)| kind).collect())
    }

    #[test]
    fn ids_that_go_up_are_told_from_ids_that_go_down() {
        for step in [1, -1] {
            assert_eq!(kinds(&older_kernel(step), step), Some(FAMILY.to_vec()));
            assert_eq!(kinds(&older_kernel(step), -step), None);
        }
    }

    #[test]
    fn one_sample_that_does_not_fit_is_enough() {
        for (id, wrong) in [
            (398, record(1, &[0, 1, 0])),
            (399, record(1, &[0, 0])),
            (400, record(1, &[14, 0xcc0, 1, 0, 0])),
            (400, record(0xffff_ea00_0000_1000, &[0, 0xcc0, 1, 0, 0])),
            (401, record(1, &[0, 8, 0])),
        ] {
            let mut by_id = older_kernel(1);
            by_id.insert(id, Records::add(&wrong, by_id.get(&id).copied()));
            assert_eq!(kinds(&by_id, 1), None, "{wrong:?}");
        }
        let mut without_frees = older_kernel(1);
        without_frees.remove(&398);
        assert_eq!(kinds(&without_frees, 1), None);
    }

    #[test]
    fn an_event_without_samples_counts_as_recorded_if_perf_was_told_to_record_it() {
        let mut by_id = older_kernel(1);
        by_id.remove(&402);
        let events = |ids: &[u64]| assigned(&by_id, ids, 400, 1).unwrap().len();
        assert_eq!((events(&[400, 402]), events(&[400])), (5, 4));
    }
}
