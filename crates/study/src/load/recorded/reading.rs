//! From a recording's events to what its CPUs did. Memory holds the blocks that are in use, not the recording.

use std::collections::{HashMap, HashSet};
use std::io;

use pageset_core::{MigrateType, Order};
use pageset_trace::{Event, EventKind, TraceError, TraceReader};
use serde::{Deserialize, Serialize};

use pageset_replay::recorded::{self, RecordedKinds, needs};

use super::acts::{Act, ActWriter, Acts, BULK_PAGES_MAX, Name, What};

/// What is played of a recording, and what is left out of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Played {
    /// Allocations and frees that are played; a bulk allocation is one.
    pub events: u64,
    /// Pages of the bulk allocations among them.
    pub bulk_pages: u64,
    /// Left out: frees of blocks whose allocation the recording does not show.
    pub unmatched_frees: u64,
    /// Left out: allocations that failed in the recording.
    pub failed_in_recording: u64,
    /// Left out: allocations of an order or a number of pages that cannot be.
    pub impossible: u64,
    /// Made up: frees of blocks that the recording shows in use when their frame is allocated once more.
    pub made_up_frees: u64,
    /// Events that the recording itself lacks.
    pub lost_events: u64,
}

/// A recording, ready to be played by any number of players.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) acts: Acts,
    /// Blocks that the recording does not free.
    kept: HashSet<u64>,
    /// Bulk pages from this number on are not freed.
    bulk_kept: u64,
}

impl Recording {
    /// Whether the recording does not free this block.
    pub(super) fn is_kept(&self, name: Name) -> bool {
        match name {
            Name::Block(number) => self.kept.contains(&number),
            Name::Bulk(number) => number >= self.bulk_kept,
        }
    }
}

/// Reads a whole recording.
pub(super) fn read(reader: &mut dyn TraceReader) -> Result<(Recording, Played), TraceError> {
    let path = std::env::temp_dir();
    let action = "write what the recording's CPUs did to a file in";
    let refused = |source| TraceError::Io { path: path.clone(), action, source };
    let mut reading = Reading::new();
    let (mut events, mut kinds) = (Vec::new(), [0; EventKind::COUNT]);
    while reader.read_block(&mut events)? > 0 {
        events.iter().try_for_each(|event| reading.take(event)).map_err(refused)?;
        recorded::count(&mut kinds, &events);
    }
    RecordedKinds::new(reader.info(), &kinds).require(needs::LOAD, reader.info())?;
    let (recording, played) = reading.finish().map_err(refused)?;
    Ok((recording, Played { lost_events: reader.lost().missing(), ..played }))
}

/// A recording that is being read.
struct Reading {
    acts: ActWriter,
    /// When each CPU did something last.
    last_ns: Vec<Option<u64>>,
    /// The blocks in use, by first frame.
    in_use: HashMap<u64, u64>,
    blocks: u64,
    /// Bulk pages so far, and those of them that were freed. The events do not name their frames, so the oldest goes
    /// first.
    bulk_pages: u64,
    bulk_freed: u64,
    played: Played,
}

impl Reading {
    fn new() -> Self {
        Self {
            acts: ActWriter::new(),
            last_ns: Vec::new(),
            in_use: HashMap::new(),
            blocks: 0,
            bulk_pages: 0,
            bulk_freed: 0,
            played: Played::default(),
        }
    }

    fn take(&mut self, event: &Event) -> io::Result<()> {
        match event.kind {
            EventKind::MmPageAlloc => self.alloc(event),
            EventKind::MmPageFree | EventKind::MmPageFreeBatched if event.is_free() => self.free(event),
            EventKind::BulkAllocReturn => self.bulk(event),
            _ => Ok(()),
        }
    }

    fn alloc(&mut self, event: &Event) -> io::Result<()> {
        if event.is_failed_allocation() {
            self.played.failed_in_recording += 1;
            return Ok(());
        }
        let Some(order) = event.block_order() else {
            self.played.impossible += 1;
            return Ok(());
        };
        let number = self.blocks;
        self.blocks += 1;
        if let Some(lost) = self.in_use.insert(event.pfn, number) {
            self.played.made_up_frees += 1;
            self.push(event, What::Free { name: Name::Block(lost) })?;
        }
        let migratetype = event.block_type().filter(|of| of.is_mergeable()).unwrap_or(MigrateType::Movable);
        self.played.events += 1;
        self.push(event, What::Alloc { name: Name::Block(number), order, migratetype })
    }

    fn free(&mut self, event: &Event) -> io::Result<()> {
        let name = match self.in_use.remove(&event.pfn) {
            Some(number) => Name::Block(number),
            None if event.order == Order::ZERO.get() && self.bulk_freed < self.bulk_pages => {
                self.bulk_freed += 1;
                Name::Bulk(self.bulk_freed - 1)
            }
            None => {
                self.played.unmatched_frees += 1;
                return Ok(());
            }
        };
        self.played.events += 1;
        self.push(event, What::Free { name })
    }

    fn bulk(&mut self, event: &Event) -> io::Result<()> {
        let pages = match event.bulk_frames().map(u32::try_from) {
            Some(Ok(0)) | None => return Ok(()),
            Some(Ok(pages)) if pages <= BULK_PAGES_MAX => pages,
            Some(_) => {
                self.played.impossible += 1;
                return Ok(());
            }
        };
        let first = self.bulk_pages;
        self.bulk_pages += u64::from(pages);
        self.played.bulk_pages = self.bulk_pages;
        self.played.events += 1;
        self.push(event, What::Bulk { first, pages })
    }

    /// Adds to what the event's CPU did.
    fn push(&mut self, event: &Event, what: What) -> io::Result<()> {
        let cpu = usize::from(event.cpu);
        if self.last_ns.len() <= cpu {
            self.last_ns.resize(cpu + 1, None);
        }
        let since = self.last_ns[cpu].map_or(0, |last_ns| event.ts_ns.saturating_sub(last_ns));
        self.last_ns[cpu] = Some(event.ts_ns);
        self.acts.push(cpu, Act { think_ns: u32::try_from(since).unwrap_or(u32::MAX), what })
    }

    fn finish(self) -> io::Result<(Recording, Played)> {
        let kept = self.in_use.into_values().collect();
        let recording = Recording { acts: self.acts.finish()?, kept, bulk_kept: self.bulk_freed };
        Ok((recording, self.played))
    }
}

#[cfg(test)]
mod tests {
    use pageset_trace::PFN_NONE;

    use super::super::acts::Cursor;
    use super::*;

    fn event(ts_ns: u64, cpu: u16, kind: EventKind, pfn: u64) -> Event {
        Event { pfn, migratetype: 0, ..Event::new(kind, ts_ns, cpu) }
    }

    fn read(events: &[Event]) -> (Recording, Played) {
        let mut reading = Reading::new();
        events.iter().for_each(|event| reading.take(event).unwrap());
        reading.finish().unwrap()
    }

    fn acts(recording: &Recording) -> Vec<Vec<(u32, What)>> {
        let of = |cpu| {
            let mut cursor = Cursor::new(cpu);
            (0..recording.acts.len(cpu))
                .map(|position| cursor.act(&recording.acts, position))
                .map(|act| (act.think_ns, act.what))
                .collect()
        };
        (0..recording.acts.cpus()).map(of).collect()
    }

    fn alloc(number: u64) -> What {
        let (order, migratetype) = (Order::ZERO, MigrateType::Unmovable);
        What::Alloc { name: Name::Block(number), order, migratetype }
    }

    fn free(name: Name) -> What {
        What::Free { name }
    }

    #[test]
    fn acts_keep_their_cpu_distance_and_partner() {
        let (recording, played) = read(&[
            event(100, 0, EventKind::MmPageAlloc, 7),
            event(250, 0, EventKind::MmPageAlloc, 8),
            event(300, 1, EventKind::MmPageFree, 7),
            event(400, 1, EventKind::MmPageFree, 9),
            event(500, 1, EventKind::MmPageAlloc, 7),
        ]);
        assert_eq!((played.events, played.unmatched_frees), (4, 1));
        let expected =
            [vec![(0, alloc(0)), (150, alloc(1))], vec![(0, free(Name::Block(0))), (200, alloc(2))]];
        assert_eq!(acts(&recording), expected);
        assert_eq!([0, 1, 2].map(|number| recording.is_kept(Name::Block(number))), [false, true, true]);
    }

    #[test]
    fn bulk_allocations_are_played_and_freed_by_frees_of_unknown_pages() {
        let (recording, played) = read(&[
            event(0, 0, EventKind::MmPageFree, 1),
            event(10, 0, EventKind::BulkAllocReturn, 3),
            event(20, 0, EventKind::MmPageFree, 2),
            Event { order: 1, ..event(30, 0, EventKind::MmPageFree, 4) },
            event(40, 0, EventKind::MmPageFree, 6),
        ]);
        let bulk = What::Bulk { first: 0, pages: 3 };
        assert_eq!(acts(&recording), [vec![(0, bulk), (10, free(Name::Bulk(0))), (20, free(Name::Bulk(1)))]]);
        assert_eq!((played.events, played.bulk_pages, played.unmatched_frees), (3, 3, 2));
        assert_eq!([1, 2].map(|number| recording.is_kept(Name::Bulk(number))), [false, true]);
    }

    #[test]
    fn what_cannot_be_played_is_counted() {
        let (recording, played) = read(&[
            event(0, 0, EventKind::MmPageAlloc, PFN_NONE),
            Event { order: 77, ..event(0, 0, EventKind::MmPageAlloc, 5) },
            event(0, 0, EventKind::BulkAllocReturn, u64::MAX),
            event(0, 0, EventKind::BulkAllocReturn, 0),
            event(5, 0, EventKind::MmPageAlloc, 7),
            event(6, 0, EventKind::MmPageAlloc, 7),
        ]);
        assert_eq!(acts(&recording), [vec![(0, alloc(0)), (1, free(Name::Block(0))), (0, alloc(1))]]);
        let expected = Played {
            events: 2,
            failed_in_recording: 1,
            impossible: 2,
            made_up_frees: 1,
            ..Played::default()
        };
        assert_eq!(played, expected);
    }

    #[test]
    fn a_recording_of_any_length_is_played_to_its_end() {
        let last = 5 << 20;
        let mut reading = Reading::new();
        for number in 0..last {
            let kind = if number % 2 == 0 { EventKind::MmPageAlloc } else { EventKind::MmPageFree };
            reading.take(&event(number, 0, kind, number / 2)).unwrap();
        }
        let (recording, played) = reading.finish().unwrap();
        assert_eq!((played.events, recording.acts.len(0)), (last, last));
        let act = Cursor::new(0).act(&recording.acts, last - 1);
        assert_eq!(act.what, free(Name::Block(last / 2 - 1)));
    }
}
