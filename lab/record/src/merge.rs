//! Merges the rings of all CPUs by time, with bounded memory.
//!
//! Rings are read in rounds, and the clock is read before each round. A round has a limit, which lies
//! [`LATE_NS`] before the read time. Events older than the limit are assumed to be in their rings when the
//! round begins. Therefore the round reads and delivers all events that are older than the limit. Younger
//! events wait for the next round. If a ring has too many pages for one round, the limit is earlier.

use std::io;

use pageset_trace::{CallSites, Event};

use crate::call_sites::Sites;
use crate::clock::now_ns;
use crate::losses::Losses;
use crate::ring::{Reading, Ring};
use pageset_trace::raw::Decoder;
use pageset_trace::raw::PageLayout;

/// Longest assumed time between an event's time and the moment when it can be read. An event that takes
/// longer, because its CPU is interrupted as a virtual CPU may be, is delivered out of order and counted. The
/// 5 ms are a guess.
pub(crate) const LATE_NS: u64 = 5_000_000;
/// Maximum number of pages that one round reads from all rings together, if there are at most 256 CPUs: 16
/// MiB with pages of 4 KiB. The maximum bounds the memory of the recorder.
const ROUND_PAGES_MAX: usize = 4096;
/// Smallest and largest number of pages that one round reads from one ring, for any number of CPUs.
const RING_PAGES: std::ops::RangeInclusive<usize> = 16..=256;
/// A high estimate of the number of events in a page. If more events of a CPU wait than one round can read,
/// the CPU's ring is not read.
const PAGE_EVENTS: usize = 128;

/// Reads all rings.
pub(crate) struct Merger {
    rings: Vec<Ring>,
    /// Maximum number of pages that a round reads from one ring.
    pages_max: usize,
    layout: PageLayout,
    decoder: Decoder,
    pub(crate) losses: Losses,
    sites: Sites,
    /// Time of the last delivered event.
    last_ns: u64,
}

impl Merger {
    pub(crate) fn new(rings: Vec<Ring>, layout: PageLayout, decoder: Decoder) -> Self {
        let share = ROUND_PAGES_MAX / rings.len().max(1);
        let pages_max = share.clamp(*RING_PAGES.start(), *RING_PAGES.end());
        Self {
            rings,
            pages_max,
            layout,
            decoder,
            losses: Losses::default(),
            sites: Sites::default(),
            last_ns: 0,
        }
    }

    /// Reads each ring once, except rings with too many waiting events. Appends the events that need not wait
    /// to `out`, by time.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn round(&mut self, out: &mut Vec<Event>) -> io::Result<Reading> {
        let mut until_ns = now_ns().saturating_sub(LATE_NS);
        let mut round = Reading::default();
        for ring in &mut self.rings {
            if ring.waiting() > self.pages_max * PAGE_EVENTS {
                // Many events of this ring wait. Read the ring again only when the other rings have caught
                // up.
                until_ns = until_ns.min(ring.last_ns);
                continue;
            }
            let (losses, sites) = (&mut self.losses, &mut self.sites);
            let reading = ring.read(self.pages_max, &self.layout, &self.decoder, losses, sites)?;
            if reading.is_cut {
                until_ns = until_ns.min(ring.last_ns);
            }
            round.pages = round.pages.max(reading.pages);
            round.is_cut |= reading.is_cut;
        }
        self.hand_on(until_ns, out);
        Ok(round)
    }

    /// Whether the next round leaves out a ring because the other rings must catch up.
    pub(crate) fn is_behind(&self) -> bool {
        self.rings.iter().any(|ring| ring.waiting() > self.pages_max * PAGE_EVENTS)
    }

    /// Returns each CPU, with the number of records that were read from its ring.
    pub(crate) fn records(&self) -> impl Iterator<Item = (u16, u64)> {
        self.rings.iter().map(|ring| (ring.cpu, ring.records))
    }

    /// Names of the call sites, and of the locks that are variables, in the events that were read. `None` if
    /// no call chains were recorded.
    pub(crate) fn call_sites(&self) -> Option<CallSites> {
        self.decoder.callers().map(|callers| self.sites.names(callers))
    }

    /// Appends all waiting events to `out`. Call this function when no more events can come.
    pub(crate) fn finish(&mut self, out: &mut Vec<Event>) {
        self.hand_on(u64::MAX, out);
    }

    fn hand_on(&mut self, until_ns: u64, out: &mut Vec<Event>) {
        let start = out.len();
        for ring in &mut self.rings {
            ring.hand_on(until_ns, out);
        }
        // The events consist of sorted runs, so this stable sort is fast.
        out[start..].sort_by_key(|event| event.ts_ns);
        for event in &out[start..] {
            self.losses.out_of_order += u64::from(event.ts_ns < self.last_ns);
            self.last_ns = event.ts_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use pageset_trace::Gap;

    use super::*;
    use pageset_trace::raw::EventFormat;
    use pageset_trace::raw::Symbols;
    use pageset_trace::raw::TRACEPOINTS;

    const PAGE_BYTES: usize = 4096;
    /// Flags of a page: events are missing before the page, and the page has their number.
    const MISSED: u64 = 3 << 30;

    /// A page of frees of frame 0 at these times.
    fn page(times: &[u64], missed: Option<u64>) -> Vec<u8> {
        let mut data: Vec<u8> = Vec::new();
        let mut last = times[0];
        for time in times {
            let header = ((time - last) as u32) << 5 | 5;
            data.extend([header, 7, 1, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
            last = *time;
        }
        let flags = missed.map_or(0, |_| MISSED);
        let mut page = times[0].to_le_bytes().to_vec();
        page.extend((flags | data.len() as u64).to_le_bytes());
        page.extend(data);
        page.extend(missed.unwrap_or(0).to_le_bytes());
        page.resize(PAGE_BYTES, 0);
        page
    }

    fn merger(rings: &[Vec<Vec<u8>>]) -> Merger {
        let text = include_str!("../tests/kernel/mm_page_alloc.format").replace("ID: 653", "ID: 7");
        let free = TRACEPOINTS.into_iter().find(|tracepoint| tracepoint.name == "mm_page_free").unwrap();
        let decoder = Decoder::new(&[(free, EventFormat::parse(&text).unwrap())], Symbols::default());
        let layout = PageLayout::parse(
            include_str!("../tests/kernel/header_page"),
            include_str!("../tests/kernel/header_event"),
        );
        let ring = |(cpu, pages): (usize, &Vec<Vec<u8>>)| {
            let mut file = tempfile::tempfile().unwrap();
            pages.iter().for_each(|page| file.write_all(page).unwrap());
            file.rewind().unwrap();
            Ring::of_file(cpu as u16, file, PAGE_BYTES)
        };
        Merger::new(rings.iter().enumerate().map(ring).collect(), layout.unwrap(), decoder.unwrap())
    }

    fn times(events: &[Event]) -> Vec<(u64, u16)> {
        events.iter().map(|event| (event.ts_ns, event.cpu)).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn rings_become_one_order_and_what_is_too_young_waits() {
        let now_ns = now_ns();
        let young_ns = now_ns + 60_000_000_000;
        let mut merger = merger(&[
            vec![page(&[10, 30], None), page(&[50, 70], None)],
            vec![page(&[20, 40, 60], None), page(&[young_ns], None)],
        ]);
        let mut out = Vec::new();
        assert_eq!(merger.round(&mut out).unwrap(), Reading { pages: 2, is_cut: false });
        assert_eq!(times(&out), [(10, 0), (20, 1), (30, 0), (40, 1), (50, 0), (60, 1), (70, 0)]);
        assert_eq!(merger.round(&mut out).unwrap(), Reading::default());
        assert_eq!(out.len(), 7);
        merger.finish(&mut out);
        assert_eq!(times(&out[7..]), [(young_ns, 1)]);
        assert_eq!(merger.losses.out_of_order, 0);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_ring_that_is_far_behind_holds_the_others_back() {
        let many: Vec<_> = (0..300).map(|at| page(&[at * 10 + 5], None)).collect();
        let mut merger = merger(&[many, vec![page(&[100, 2995], None)]]);
        let mut out = Vec::new();
        assert_eq!(merger.round(&mut out).unwrap(), Reading { pages: 256, is_cut: true });
        assert_eq!(out.last().map(|event| event.ts_ns), Some(2555), "as far as both were read");
        merger.round(&mut out).unwrap();
        assert_eq!(out.len(), 302);
        assert!(out.is_sorted_by_key(|event| event.ts_ns) && merger.losses.out_of_order == 0);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn what_is_missing_has_its_place_and_what_is_late_is_counted() {
        let mut merger = merger(&[vec![page(&[10, 30], None), page(&[90], Some(7)), page(&[20], None)]]);
        let mut out = Vec::new();
        merger.round(&mut out).unwrap();
        assert_eq!(merger.losses.gaps, [Gap { cpu: 0, after_ns: 30, before_ns: 90, events: Some(7) }]);
        assert_eq!(merger.losses.events(), 7);
        merger.rings.push(super::tests::merger(&[vec![page(&[15], None)]]).rings.remove(0));
        merger.round(&mut out).unwrap();
        assert_eq!((out.len(), merger.losses.out_of_order), (5, 1));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_damaged_page_is_a_gap() {
        let mut damaged = page(&[10, 30], None);
        damaged[16 + 24] = 5 << 5 | 28;
        let mut merger = merger(&[vec![damaged, page(&[50], None)]]);
        let mut out = Vec::new();
        merger.round(&mut out).unwrap();
        assert_eq!(times(&out), [(10, 0), (50, 0)]);
        assert_eq!(merger.losses.gaps.len(), 1);
        assert_eq!(merger.losses.gaps[0].events, None);
    }
}
