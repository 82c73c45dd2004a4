//! Turns a recording into lists of operations, one list for each CPU. While reading, the process has only the
//! live blocks and a part of the lists in memory, and not the whole recording.

use std::collections::HashSet;
use std::io;

use pageset_replay::operations::{BlockName, Blocks, LeftOut, Operation};
use pageset_trace::{TraceError, TraceReader};
use serde::{Deserialize, Serialize};

use super::lists::{ListWriter, Lists, Paced};

/// Counts of the events that are repeated, and of the events that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Played {
    /// Number of allocations and frees that are repeated. A bulk allocation counts as one allocation.
    pub events: u64,
    /// Number of pages of the bulk allocations that are repeated.
    pub bulk_pages: u64,
    /// Number of frees that are left out because the recording does not show the block's allocation.
    pub unmatched_frees: u64,
    /// Number of allocations that are left out because the allocations failed in the recording.
    pub failed_in_recording: u64,
    /// Number of allocations that are left out because their order or number of pages is impossible.
    pub impossible: u64,
    /// Number of frees that the recording lacks and that reading adds. If the recording allocates a frame
    /// twice without a free in between, the first block is freed before the second allocation.
    pub made_up_frees: u64,
    /// Number of events that were lost when the recording was made.
    pub lost_events: u64,
}

/// The lists of a recording's operations, and the blocks that the recording does not free.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) lists: Lists,
    /// The blocks that the recording allocates and does not free.
    kept: HashSet<u32>,
    /// Number of the first page from bulk allocations that the recording does not free. The pages of all bulk
    /// allocations are numbered, and CPUs free these pages in the order of the numbers.
    bulk_kept: u32,
}

impl Recording {
    /// Whether the recording allocates `block` and does not free `block`.
    pub(super) fn is_kept(&self, block: BlockName) -> bool {
        match block {
            BlockName::Alone(number) => self.kept.contains(&number),
            BlockName::Bulk(number) => number >= self.bulk_kept,
        }
    }
}

/// Reads a whole recording.
pub(super) fn read(reader: &mut dyn TraceReader) -> Result<(Recording, Played), TraceError> {
    let path = std::env::temp_dir();
    let action = "write what the recording's CPUs did to a file in";
    let refused = |source| TraceError::Io { path: path.clone(), action, source };
    let mut reading = Reading::new();
    let blocks =
        Blocks::read(reader, &mut |operation| reading.take(operation).map_err(refused), &mut |_| ())?;
    let (recording, played) = reading.finish(&blocks).map_err(refused)?;
    Ok((recording, Played { lost_events: reader.lost().missing(), ..played }))
}

/// A recording that is being read.
struct Reading {
    lists: ListWriter,
    /// Time of each CPU's last operation.
    last_ns: Vec<Option<u64>>,
    operations: u64,
}

impl Reading {
    fn new() -> Self {
        Self { lists: ListWriter::new(), last_ns: Vec::new(), operations: 0 }
    }

    /// Adds an operation to the list of its CPU.
    fn take(&mut self, operation: Operation) -> io::Result<()> {
        let Operation { ts_ns, cpu, what } = operation;
        let cpu = usize::from(cpu);
        if self.last_ns.len() <= cpu {
            self.last_ns.resize(cpu + 1, None);
        }
        let since = self.last_ns[cpu].map_or(0, |last_ns| ts_ns.saturating_sub(last_ns));
        self.last_ns[cpu] = Some(ts_ns);
        self.operations += 1;
        self.lists.push(cpu, Paced { think_ns: u32::try_from(since).unwrap_or(u32::MAX), what })
    }

    fn finish(self, blocks: &Blocks) -> io::Result<(Recording, Played)> {
        let LeftOut { unmatched_frees, failed_in_recording, impossible, allocated_twice, .. } =
            blocks.left_out;
        let played = Played {
            // For each frame that the recording allocates twice without a free in between, `Blocks::read`
            // added one free.
            events: self.operations - allocated_twice,
            bulk_pages: u64::from(blocks.bulk_pages),
            unmatched_frees,
            failed_in_recording,
            impossible,
            made_up_frees: allocated_twice,
            lost_events: 0,
        };
        let kept = blocks.kept().collect();
        Ok((Recording { lists: self.lists.finish()?, kept, bulk_kept: blocks.bulk_freed }, played))
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::{MigrateType, Order, ZoneKind};
    use pageset_replay::operations::What;
    use pageset_trace::{Event, EventKind};

    use super::super::lists::Cursor;
    use super::*;

    fn event(ts_ns: u64, cpu: u16, kind: EventKind, pfn: u64) -> Event {
        Event { pfn, migratetype: 0, ..Event::new(kind, ts_ns, cpu) }
    }

    fn read(events: impl IntoIterator<Item = Event>) -> (Recording, Played) {
        let (mut reading, mut blocks) = (Reading::new(), Blocks::default());
        for event in events {
            blocks.take(&event, &mut |operation| reading.take(operation)).unwrap();
        }
        reading.finish(&blocks).unwrap()
    }

    fn lists(recording: &Recording) -> Vec<Vec<(u32, What)>> {
        let of = |cpu| {
            let mut cursor = Cursor::new(cpu);
            (0..recording.lists.len(cpu))
                .map(|position| cursor.at(&recording.lists, position))
                .map(|paced| (paced.think_ns, paced.what))
                .collect()
        };
        (0..recording.lists.cpus()).map(of).collect()
    }

    fn alloc(number: u32) -> What {
        let (order, migratetype, highest) = (Order::ZERO, MigrateType::Unmovable, ZoneKind::Normal);
        What::Alloc { block: BlockName::Alone(number), order, migratetype, highest }
    }

    const fn free(block: BlockName) -> What {
        What::Free { block }
    }

    #[test]
    fn operations_keep_their_cpu_distance_and_partner() {
        let (recording, played) = read([
            event(100, 0, EventKind::MmPageAlloc, 7),
            event(250, 0, EventKind::MmPageAlloc, 8),
            event(300, 1, EventKind::MmPageFree, 7),
            event(400, 1, EventKind::MmPageFree, 9),
            event(500, 1, EventKind::MmPageAlloc, 7),
        ]);
        assert_eq!((played.events, played.unmatched_frees), (4, 1));
        let expected =
            [vec![(0, alloc(0)), (150, alloc(1))], vec![(0, free(BlockName::Alone(0))), (200, alloc(2))]];
        assert_eq!(lists(&recording), expected);
        assert_eq!([0, 1, 2].map(|number| recording.is_kept(BlockName::Alone(number))), [false, true, true]);
    }

    #[test]
    fn bulk_pages_are_kept_from_the_first_that_is_not_freed() {
        let (recording, played) = read([
            event(10, 0, EventKind::BulkAllocReturn, 3),
            event(20, 0, EventKind::MmPageFree, 2),
            event(40, 0, EventKind::MmPageFree, 6),
        ]);
        let bulk = What::Bulk { first: 0, pages: 3 };
        assert_eq!(
            lists(&recording),
            [vec![(0, bulk), (10, free(BlockName::Bulk(0))), (20, free(BlockName::Bulk(1)))]]
        );
        assert_eq!((played.events, played.bulk_pages), (3, 3));
        assert_eq!([1, 2].map(|number| recording.is_kept(BlockName::Bulk(number))), [false, true]);
    }

    #[test]
    fn a_free_that_is_made_up_is_no_event() {
        let (recording, played) =
            read([event(5, 0, EventKind::MmPageAlloc, 7), event(6, 0, EventKind::MmPageAlloc, 7)]);
        assert_eq!(lists(&recording), [vec![(0, alloc(0)), (1, free(BlockName::Alone(0))), (0, alloc(1))]]);
        assert_eq!(played, Played { events: 2, made_up_frees: 1, ..Played::default() });
    }

    #[test]
    fn a_recording_of_any_length_is_played_to_its_end() {
        let last = 5 << 20;
        let (recording, played) = read((0..last).map(|number| {
            let kind = if number % 2 == 0 { EventKind::MmPageAlloc } else { EventKind::MmPageFree };
            event(number, 0, kind, number / 2)
        }));
        assert_eq!((played.events, recording.lists.len(0)), (last, last));
        let paced = Cursor::new(0).at(&recording.lists, last - 1);
        assert_eq!(paced.what, free(BlockName::Alone((last / 2 - 1) as u32)));
    }
}
