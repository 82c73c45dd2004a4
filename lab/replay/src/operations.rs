//! The requests of a recorded load to its allocator, in order, with a name for each block. This module is for
//! programs that repeat a recording on another allocator.
//!
//! A replay of page sets does not use this module, for two reasons. First, a page set does not distinguish
//! pages, so pages need no names. Second, a replay corrects an earlier event when a later event shows more,
//! while this module never corrects an event.

use foldhash::HashMap;
use pageset_core::{MigrateType, Order, ZoneKind};
use pageset_trace::{Event, EventKind, TraceError, TraceReader};
use serde::Serialize;

use crate::pressure::highest_zone;
use crate::recorded::{self, RecordedKinds, needs};
pub use crate::replay::OperationList;

/// A request of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The time, in nanoseconds of the recording's clock.
    pub ts_ns: u64,
    /// The CPU.
    pub cpu: u16,
    /// The request.
    pub what: What,
}

/// The kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Allocate a block.
    Alloc {
        /// The block's name.
        block: BlockName,
        /// The block's size.
        order: Order,
        /// The block's migratetype.
        migratetype: MigrateType,
        /// The highest zone that may supply the block.
        highest: ZoneKind,
    },
    /// Allocate single pages in bulk. The names of these pages are the numbers from `first` on.
    Bulk {
        /// The first page's number.
        first: u32,
        /// The number of pages.
        pages: u32,
    },
    /// Free the block with this name.
    Free {
        /// The name that the allocating request gave to the block.
        block: BlockName,
    },
}

/// The name of a block, unique in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockName {
    /// A block that was not allocated in bulk, numbered by its allocation.
    Alone(u32),
    /// A page of a bulk allocation. The pages of all bulk allocations are numbered together.
    Bulk(u32),
}

/// Counts of recorded events that lead to no request, or to a different request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Number of frees of blocks whose allocation the recording does not show.
    pub unmatched_frees: u64,
    /// Number of allocations that failed in the recording.
    pub failed_in_recording: u64,
    /// Number of allocations with an impossible order, or with an impossible number of pages.
    pub impossible: u64,
    /// Number of allocations of frames that were in use. The event of the earlier block's free is lost, so a
    /// free is inserted before such an allocation.
    pub allocated_twice: u64,
}

/// A bulk allocation of more than this number of pages counts as an impossible event.
pub const BULK_PAGES_MAX: u32 = 1 << 16;

/// The blocks in use while a recording is read, and counts of the events and requests so far.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// The blocks in use, by first frame.
    in_use: HashMap<u64, u32>,
    /// Number of blocks that were allocated one at a time, not in bulk.
    pub allocated: u32,
    /// Number of pages that were allocated in bulk.
    pub bulk_pages: u32,
    /// Number of freed pages of bulk allocations. Events do not name the frames of bulk allocations, so this
    /// module assumes that the oldest page is freed first.
    pub bulk_freed: u32,
    /// The highest CPU number in the recording, plus 1.
    pub cpus: u32,
    /// Counts of the events that lead to no request, or to a different request.
    pub left_out: LeftOut,
}

impl Blocks {
    /// Reads a whole recording, and passes its requests to `each`, in order. `progress` receives the number
    /// of events read.
    ///
    /// # Errors
    /// An error if the recording cannot be read, or has no allocations or no frees. If `each` fails, returns
    /// the error of `each`.
    pub fn read(
        reader: &mut dyn TraceReader,
        each: &mut dyn FnMut(Operation) -> Result<(), TraceError>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, TraceError> {
        let mut blocks = Self::default();
        let mut events = Vec::new();
        let (mut read, mut kinds) = (0, [0; EventKind::COUNT]);
        while reader.read_block(&mut events)? > 0 {
            events.iter().try_for_each(|event| blocks.take(event, each))?;
            read += events.len() as u64;
            recorded::count(&mut kinds, &events);
            progress(read);
        }
        RecordedKinds::new(reader.info(), &kinds).require(needs::LOAD, reader.info())?;
        Ok(blocks)
    }

    /// Returns the blocks that the recording does not free, except pages of bulk allocations.
    pub fn kept(&self) -> impl Iterator<Item = u32> {
        self.in_use.values().copied()
    }

    /// Passes the requests of an event to `each`.
    ///
    /// # Errors
    /// An error of `each`.
    pub fn take<E>(
        &mut self,
        event: &Event,
        each: &mut dyn FnMut(Operation) -> Result<(), E>,
    ) -> Result<(), E> {
        self.cpus = self.cpus.max(u32::from(event.cpu) + 1);
        let mut give = |what| each(Operation { ts_ns: event.ts_ns, cpu: event.cpu, what });
        match event.kind {
            EventKind::MmPageAlloc => {
                let Some((what, lost)) = self.alloc(event) else { return Ok(()) };
                if let Some(lost) = lost {
                    give(What::Free { block: BlockName::Alone(lost) })?;
                }
                give(what)
            }
            EventKind::MmPageFree | EventKind::MmPageFreeBatched if event.is_free() => {
                self.free(event).map_or(Ok(()), give)
            }
            EventKind::BulkAllocReturn => self.bulk(event).map_or(Ok(()), give),
            _ => Ok(()),
        }
    }

    /// Makes the request for an allocation. If the frame was in use, also returns the earlier block, because
    /// the event of its free is lost.
    fn alloc(&mut self, event: &Event) -> Option<(What, Option<u32>)> {
        if event.is_failed_allocation() {
            self.left_out.failed_in_recording += 1;
            return None;
        }
        let Some((order, next)) = event.block_order().zip(self.allocated.checked_add(1)) else {
            self.left_out.impossible += 1;
            return None;
        };
        let number = std::mem::replace(&mut self.allocated, next);
        // If a frame in use is allocated again, the event of the earlier block's free was lost.
        let lost = self.in_use.insert(event.pfn, number);
        self.left_out.allocated_twice += u64::from(lost.is_some());
        let migratetype = event.block_type().filter(|of| of.is_mergeable()).unwrap_or(MigrateType::Movable);
        let highest = match highest_zone(event.gfp) {
            0 => ZoneKind::Dma,
            1 => ZoneKind::Dma32,
            2 => ZoneKind::Normal,
            _ => ZoneKind::Movable,
        };
        Some((What::Alloc { block: BlockName::Alone(number), order, migratetype, highest }, lost))
    }

    fn free(&mut self, event: &Event) -> Option<What> {
        let block = match self.in_use.remove(&event.pfn) {
            Some(number) => BlockName::Alone(number),
            None if event.order == Order::ZERO.get() && self.bulk_freed < self.bulk_pages => {
                self.bulk_freed += 1;
                BlockName::Bulk(self.bulk_freed - 1)
            }
            None => {
                self.left_out.unmatched_frees += 1;
                return None;
            }
        };
        Some(What::Free { block })
    }

    fn bulk(&mut self, event: &Event) -> Option<What> {
        let asked = event.bulk_frames().filter(|pages| *pages > 0)?;
        let pages = u32::try_from(asked).ok().filter(|pages| *pages <= BULK_PAGES_MAX);
        let Some((pages, all)) = pages.and_then(|pages| Some((pages, self.bulk_pages.checked_add(pages)?)))
        else {
            self.left_out.impossible += 1;
            return None;
        };
        let first = std::mem::replace(&mut self.bulk_pages, all);
        Some(What::Bulk { first, pages })
    }
}

#[cfg(test)]
mod tests {
    use pageset_trace::PFN_NONE;

    use super::*;

    fn event(ts_ns: u64, kind: EventKind, pfn: u64) -> Event {
        Event { pfn, migratetype: 0, ..Event::new(kind, ts_ns, 1) }
    }

    fn read(events: &[Event]) -> (Vec<(u64, What)>, Blocks) {
        let (mut told, mut blocks) = (Vec::new(), Blocks::default());
        for event in events {
            let each = &mut |Operation { ts_ns, what, .. }| {
                told.push((ts_ns, what));
                Ok::<(), TraceError>(())
            };
            blocks.take(event, each).unwrap();
        }
        (told, blocks)
    }

    fn alloc(number: u32) -> What {
        What::Alloc {
            block: BlockName::Alone(number),
            order: Order::ZERO,
            migratetype: MigrateType::Unmovable,
            highest: ZoneKind::Normal,
        }
    }

    const fn free(block: BlockName) -> What {
        What::Free { block }
    }

    #[test]
    fn an_operation_takes_24_bytes() {
        assert_eq!(size_of::<Operation>(), 24);
    }

    #[test]
    fn frees_find_their_allocation() {
        let (told, blocks) = read(&[
            event(1, EventKind::MmPageFree, 9),
            event(2, EventKind::MmPageAlloc, 7),
            event(3, EventKind::MmPageAlloc, 7),
            event(4, EventKind::MmPageFree, 7),
            event(5, EventKind::MmPageAlloc, 8),
        ]);
        let alone = BlockName::Alone;
        assert_eq!(
            told,
            [(2, alloc(0)), (3, free(alone(0))), (3, alloc(1)), (4, free(alone(1))), (5, alloc(2))]
        );
        assert_eq!((blocks.allocated, blocks.cpus), (3, 2));
        assert_eq!(blocks.kept().collect::<Vec<_>>(), [2]);
        let left_out = LeftOut { unmatched_frees: 1, allocated_twice: 1, ..LeftOut::default() };
        assert_eq!(blocks.left_out, left_out);
    }

    #[test]
    fn pages_of_bulk_allocations_are_freed_by_frees_of_unknown_pages() {
        let (told, blocks) = read(&[
            event(0, EventKind::MmPageFree, 1),
            event(10, EventKind::BulkAllocReturn, 3),
            event(20, EventKind::MmPageFree, 2),
            Event { order: 1, ..event(30, EventKind::MmPageFree, 4) },
            event(40, EventKind::MmPageFree, 6),
        ]);
        let bulk = What::Bulk { first: 0, pages: 3 };
        assert_eq!(told, [(10, bulk), (20, free(BlockName::Bulk(0))), (40, free(BlockName::Bulk(1)))]);
        assert_eq!((blocks.bulk_pages, blocks.bulk_freed, blocks.left_out.unmatched_frees), (3, 2, 2));
    }

    #[test]
    fn what_cannot_be_played_is_counted() {
        let (told, blocks) = read(&[
            event(0, EventKind::MmPageAlloc, PFN_NONE),
            Event { order: 77, ..event(0, EventKind::MmPageAlloc, 5) },
            event(0, EventKind::BulkAllocReturn, u64::MAX),
            event(0, EventKind::BulkAllocReturn, 0),
        ]);
        assert_eq!(told, []);
        let left_out = LeftOut { failed_in_recording: 1, impossible: 2, ..LeftOut::default() };
        assert_eq!(blocks.left_out, left_out);
    }
}
