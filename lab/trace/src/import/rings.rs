//! Reads the rings of several CPUs, which lie one after the other in a file, and merges their events by time.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    io::{self, SeekFrom},
    path::{Path, PathBuf},
};

use crate::{
    amount::Amount,
    damage::Strictness,
    error::TraceError,
    event::Event,
    input::Seekable,
    raw::{Decoder, Missed, PageLayout, Records, Waits},
};

/// Largest number of bytes in memory for all rings together. One page of each ring is in memory.
const PAGES_BYTES_MAX: usize = 64 << 20;

/// The place of a CPU's ring in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) cpu: u16,
    /// Offset in bytes.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) bytes: u64,
}

/// Reads all rings.
pub(super) struct Rings {
    path: PathBuf,
    file: Box<dyn Seekable>,
    layout: PageLayout,
    decoder: Decoder,
    strictness: Strictness,
    rings: Vec<Ring>,
    /// The rings that have a next event, sorted by the time of this event.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    is_begun: bool,
    page: Vec<u8>,
    last_ns: u64,
    pub(super) losses: RingLosses,
    /// How many bytes of all rings were read.
    pub(super) amount: Amount,
}

/// Counts of events and pages in the rings that were lost or not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RingLosses {
    /// Number of missing events, according to counts in the pages of the rings.
    pub(super) counted: u64,
    /// Number of pages that report missing events without their number, and pages that contradict themselves.
    pub(super) gaps_of_unknown_size: u64,
    /// Number of records that the decoder skips: unknown events, and events that this crate does not need.
    pub(super) unknown_events: u64,
    /// Number of delivered events whose time is earlier than the time of the event delivered immediately
    /// before.
    pub(super) out_of_order: u64,
}

struct Ring {
    cpu: u16,
    offset: u64,
    end: u64,
    waits: Waits,
    /// Remaining events of the current page.
    events: VecDeque<Event>,
}

impl Rings {
    /// Reads the rings at `places` in `file`.
    pub(super) fn new(
        path: &Path,
        mut file: Box<dyn Seekable>,
        places: &[Place],
        (layout, decoder): (PageLayout, Decoder),
        strictness: Strictness,
    ) -> Result<Self, TraceError> {
        let file_bytes =
            file.seek(SeekFrom::End(0)).map_err(|error| TraceError::io(path, "find the end of", error))?;
        let all_bytes = places.iter().fold(0_u64, |sum, place| sum.saturating_add(place.bytes));
        let farthest = places.iter().map(|place| place.offset.saturating_add(place.bytes)).max();
        if all_bytes > file_bytes || farthest.is_some_and(|end| end > file_bytes) {
            let problem =
                format!("is truncated: it has {file_bytes} bytes, and its events would be after its end");
            return Err(TraceError::file(path, problem, "copy it again, or record again"));
        }
        let pages_bytes = places.len().saturating_mul(layout.page_bytes);
        if pages_bytes > PAGES_BYTES_MAX {
            let problem =
                format!("has pages of {} bytes for each of {} CPUs", layout.page_bytes, places.len());
            return Err(TraceError::file(
                path,
                problem,
                "record with the kernel's default size of ring pages",
            ));
        }
        let ring = |place: &Place| Ring {
            cpu: place.cpu,
            offset: place.offset,
            end: place.offset + place.bytes,
            waits: Waits::keeping_all(),
            events: VecDeque::new(),
        };
        Ok(Self {
            path: path.to_owned(),
            file,
            page: vec![0; layout.page_bytes],
            layout,
            decoder,
            strictness,
            rings: places.iter().map(ring).collect(),
            next: BinaryHeap::new(),
            is_begun: false,
            last_ns: 0,
            losses: RingLosses::default(),
            amount: Amount::bytes(all_bytes),
        })
    }

    /// The next event of all rings, or `None` at the end.
    pub(super) fn next_event(&mut self) -> Result<Option<Event>, TraceError> {
        if !self.is_begun {
            self.is_begun = true;
            (0..self.rings.len()).try_for_each(|index| self.queue(index))?;
        }
        let Some(Reverse((_, index))) = self.next.pop() else { return Ok(None) };
        let event = self.rings[index].events.pop_front();
        self.queue(index)?;
        if let Some(event) = event {
            self.losses.out_of_order += u64::from(event.ts_ns < self.last_ns);
            self.last_ns = event.ts_ns;
        }
        Ok(event)
    }

    /// Inserts a ring into the heap by the time of its next event.
    fn queue(&mut self, index: usize) -> Result<(), TraceError> {
        while self.rings[index].events.is_empty() && self.rings[index].offset < self.rings[index].end {
            self.read_page(index)?;
        }
        if let Some(event) = self.rings[index].events.front() {
            self.next.push(Reverse((event.ts_ns, index)));
        }
        Ok(())
    }

    fn read_page(&mut self, index: usize) -> Result<(), TraceError> {
        let ring = &mut self.rings[index];
        let offset = ring.offset;
        let bytes = (ring.end - offset).min(self.page.len() as u64);
        let page = &mut self.page[..bytes as usize];
        self.file
            .seek(SeekFrom::Start(offset))
            .and_then(|_| io::Read::read_exact(&mut self.file, page))
            .map_err(|error| TraceError::io(&self.path, "read", error))?;
        ring.offset += bytes;
        self.amount.add(bytes);
        let is_whole = take_page(page, &self.layout, &self.decoder, ring, &mut self.losses);
        match self.strictness {
            Strictness::Strict if !is_whole => Err(TraceError::offset(
                &self.path,
                offset,
                format!("the page of CPU {} contradicts itself", ring.cpu),
                "record again, or read leniently to skip and count such pages",
            )),
            _ => {
                self.losses.gaps_of_unknown_size += u64::from(!is_whole);
                Ok(())
            }
        }
    }
}

/// Appends the events of a page to the events of its ring. Returns false if the page contradicts itself.
fn take_page(
    page: &[u8],
    layout: &PageLayout,
    decoder: &Decoder,
    ring: &mut Ring,
    losses: &mut RingLosses,
) -> bool {
    let Ok(records) = Records::of(layout, page) else { return false };
    match records.missed {
        Some(Missed { events: Some(events) }) => losses.counted = losses.counted.saturating_add(events),
        Some(Missed { events: None }) => losses.gaps_of_unknown_size += 1,
        None => {}
    }
    for record in records {
        let Ok(record) = record else { return false };
        match decoder.event(&record, ring.cpu, &mut ring.waits) {
            Some(event) => ring.events.push_back(event),
            None => losses.unknown_events += 1,
        }
    }
    true
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::raw::{EventFormat, Symbols, TRACEPOINTS};

    const PAGE_BYTES: usize = 4096;

    /// A page with allocations of frame 0 at these times.
    fn page(times: &[u64], missed: Option<u64>) -> Vec<u8> {
        let mut data: Vec<u8> = Vec::new();
        let mut last = times[0];
        for time in times {
            // The header of a record of 40 bytes. 653 is the event's id.
            let header = ((time - last) as u32) << 5 | 10;
            data.extend([header, 653, 1, 0, 0, 0, 0, 0, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
            last = *time;
        }
        let flags = missed.map_or(0, |_| 3 << 30);
        let mut page = times[0].to_le_bytes().to_vec();
        page.extend((flags | data.len() as u64).to_le_bytes());
        page.extend(data);
        page.extend(missed.unwrap_or(0).to_le_bytes());
        page.resize(PAGE_BYTES, 0);
        page
    }

    fn rings(cpus: &[Vec<Vec<u8>>], strictness: Strictness, cut: usize) -> Result<Rings, TraceError> {
        let text = include_str!("../../tests/kernel/mm_page_alloc.format");
        let event = (TRACEPOINTS[0], EventFormat::parse(text).unwrap());
        let decoder = Decoder::new(&[event], Symbols::default()).unwrap();
        let layout = PageLayout::parse(
            include_str!("../../tests/kernel/header_page"),
            include_str!("../../tests/kernel/header_event"),
        );
        let (mut file, mut places) = (vec![], vec![]);
        for (cpu, pages) in cpus.iter().enumerate() {
            let pages = pages.concat();
            places.push(Place { cpu: cpu as u16, offset: file.len() as u64, bytes: pages.len() as u64 });
            file.extend(pages);
        }
        file.truncate(file.len() - cut);
        let file = Box::new(Cursor::new(file));
        Rings::new(Path::new("t.dat"), file, &places, (layout.unwrap(), decoder), strictness)
    }

    fn times(rings: &mut Rings) -> Vec<(u64, u16)> {
        std::iter::from_fn(|| rings.next_event().unwrap()).map(|event| (event.ts_ns, event.cpu)).collect()
    }

    #[test]
    fn rings_become_one_order_with_their_losses() {
        let cpus = [
            vec![page(&[10, 30], None), page(&[50, 70], Some(7))],
            vec![page(&[20, 40, 60], None)],
            vec![page(&[5], None), page(&[1], None)],
        ];
        let mut rings = rings(&cpus, Strictness::Strict, 0).unwrap();
        let expected = [(5, 2), (1, 2), (10, 0), (20, 1), (30, 0), (40, 1), (50, 0), (60, 1), (70, 0)];
        assert_eq!(times(&mut rings), expected);
        assert_eq!(rings.losses, RingLosses { counted: 7, out_of_order: 1, ..RingLosses::default() });
    }

    #[test]
    fn a_damaged_page_is_an_error_or_a_gap() {
        let mut damaged = page(&[10, 30], None);
        damaged[16 + 44] = 5 << 5 | 28;
        damaged[8] = 50;
        let cpus = [vec![damaged, page(&[50], None)]];
        let error = rings(&cpus, Strictness::Strict, 0).unwrap().next_event().unwrap_err().to_string();
        assert!(error.starts_with("t.dat: byte 0: ") && error.contains("leniently"), "{error}");
        let mut lenient = rings(&cpus, Strictness::Lenient, 0).unwrap();
        assert_eq!(times(&mut lenient), [(10, 0), (50, 0)]);
        assert_eq!(lenient.losses.gaps_of_unknown_size, 1);
    }

    #[test]
    fn a_file_that_was_cut_is_refused() {
        let error =
            rings(&[vec![page(&[10], None)]], Strictness::Lenient, 1).map(drop).unwrap_err().to_string();
        assert!(error.contains("truncated"), "{error}");
    }
}
