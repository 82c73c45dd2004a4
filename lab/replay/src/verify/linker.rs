//! Reads a recording chunk by chunk, and links the events of each chunk.

use std::sync::mpsc::channel;
use std::thread;

use pageset_trace::{BLOCK_EVENTS_MAX, Event, EventKind, TraceError, TraceReader};

use super::links::{self, BESIDE_BYTES, Chunk};
use super::numbers::FrameNumbers;
use crate::recorded;

/// Maximum number of events in a chunk. A recording is compared chunk by chunk, and a chunk with its links
/// takes 106 MiB.
pub(super) const CHUNK_EVENTS_MAX: usize = 2 << 20;
/// Number of events at the end of a chunk that are compared only together with the next chunk. The comparison
/// of an event may search at most this number of later events.
const LOOK_AHEAD: usize = 64 << 10;

/// Reasons why a chunk cannot be read, linked or compared.
#[derive(Debug)]
pub(super) enum LinkError {
    Trace(TraceError),
    /// There is no memory for the links, or the recording exceeds a limit.
    Unusable(String),
}

/// Reads and links chunks. A linker uses no results of comparisons, so the linker can work on a chunk while
/// another thread compares the chunk before.
pub(super) struct Linker<'r> {
    reader: &'r mut dyn TraceReader,
    numbers: FrameNumbers,
    cpus: usize,
    chunk_events_max: usize,
    look_ahead: usize,
    /// Events left over from the previous chunk. The next chunk begins with these events.
    rest: Vec<Event>,
    block: Vec<Event>,
    /// Number of events of each kind.
    pub(super) kinds: [u64; EventKind::COUNT],
    is_read: bool,
}

impl<'r> Linker<'r> {
    pub(super) fn new(reader: &'r mut dyn TraceReader, numbers: FrameNumbers, cpus: usize) -> Self {
        let (rest, block, kinds) = (Vec::new(), Vec::new(), [0; EventKind::COUNT]);
        Self {
            reader,
            numbers,
            cpus,
            chunk_events_max: CHUNK_EVENTS_MAX,
            look_ahead: LOOK_AHEAD,
            rest,
            block,
            kinds,
            is_read: false,
        }
    }

    /// Passes each chunk of the recording to `compare`. While `compare` works, a second thread reads and
    /// links the next chunk. `chunk` is the memory for one chunk.
    pub(super) fn for_each_chunk(
        &mut self,
        mut chunk: Chunk,
        mut compare: impl FnMut(&mut Chunk) -> Result<(), String>,
    ) -> Result<(), LinkError> {
        self.next(&mut chunk)?;
        let mut spare = Chunk::default();
        if !self.is_read
            && spare.reserve(self.chunk_events_max).is_ok()
            && links::room_for(BESIDE_BYTES, "tables").is_ok()
        {
            match self.link_beside((chunk, spare), &mut compare)? {
                Some(left) => chunk = left,
                None => return Ok(()),
            }
        }
        // One thread does all the work if the recording has only one chunk, or if the system has no memory or
        // no thread for a second chunk.
        loop {
            compare(&mut chunk).map_err(LinkError::Unusable)?;
            if self.is_read {
                return Ok(());
            }
            self.next(&mut chunk)?;
        }
    }

    /// Compares `chunk` and all later chunks. Another thread links the later chunks, and `spare` is memory
    /// for the next chunk. Returns `chunk` uncompared if the system starts no thread.
    fn link_beside(
        &mut self,
        (mut chunk, spare): (Chunk, Chunk),
        compare: &mut impl FnMut(&mut Chunk) -> Result<(), String>,
    ) -> Result<Option<Chunk>, LinkError> {
        thread::scope(|scope| {
            let (linked, chunks) = channel();
            let (spares, to_fill) = channel();
            let link = move || {
                // If a comparison fails, the comparing thread drops its ends of both channels, so that this
                // thread ends.
                while !self.is_read
                    && let Ok(mut chunk) = to_fill.recv()
                {
                    let result = self.next(&mut chunk);
                    let is_error = result.is_err();
                    if linked.send(result.map(|()| chunk)).is_err() || is_error {
                        return;
                    }
                }
            };
            if thread::Builder::new().name("link".to_owned()).spawn_scoped(scope, link).is_err() {
                return Ok(Some(chunk));
            }
            drop(spares.send(spare));
            compare(&mut chunk).map_err(LinkError::Unusable)?;
            drop(spares.send(chunk));
            for chunk in chunks {
                let mut chunk = chunk?;
                compare(&mut chunk).map_err(LinkError::Unusable)?;
                drop(spares.send(chunk));
            }
            Ok(None)
        })
    }

    /// Fills a chunk with the next events, and links these events.
    fn next(&mut self, chunk: &mut Chunk) -> Result<(), LinkError> {
        let known = self.numbers.seen().len();
        chunk.events.clear();
        chunk.events.append(&mut self.rest);
        while !self.is_read && chunk.events.len() + BLOCK_EVENTS_MAX <= self.chunk_events_max {
            match self.reader.read_block(&mut self.block).map_err(LinkError::Trace)? {
                0 => self.is_read = true,
                _ => {
                    recorded::count(&mut self.kinds, &self.block);
                    let mut frames = self.block.iter().filter_map(Event::frame);
                    frames.try_for_each(|pfn| self.numbers.see(pfn.0)).map_err(LinkError::Unusable)?;
                    chunk.events.extend_from_slice(&self.block);
                }
            }
        }
        chunk.seen.clear();
        chunk.seen.extend_from_slice(self.numbers.seen().get(known..).unwrap_or_default());
        chunk.link(&self.numbers, self.cpus).map_err(LinkError::Unusable)?;
        // The last events are compared together with the next chunk. Comparisons of earlier events may
        // already search the last events.
        let seen = if self.is_read { 0 } else { self.look_ahead };
        chunk.end = chunk.events.len().saturating_sub(seen);
        self.rest.extend_from_slice(&chunk.events[chunk.end..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use pageset_trace::{LostEvents, TraceInfo};

    use super::*;

    /// A reader of blocks of 1,000 frees. The frees are numbered from 0, and each free frees another page.
    struct Frees {
        info: TraceInfo,
        next: u64,
        end: u64,
        fails_at: u64,
    }

    impl TraceReader for Frees {
        fn info(&self) -> &TraceInfo {
            &self.info
        }

        fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
            events.clear();
            if self.next >= self.fails_at {
                let (path, problem, remedy) = (self.info.path.clone(), "is damaged".into(), "none".into());
                return Err(TraceError::File { path, problem, remedy });
            }
            let block = self.next..self.end.min(self.next + 1000);
            self.next = block.end;
            events.extend(block.map(|pfn| Event { pfn, ..Event::new(EventKind::MmPageFree, pfn, 0) }));
            Ok(events.len())
        }

        fn has_ticks(&mut self, _: &mut dyn FnMut()) -> Result<bool, TraceError> {
            Ok(false)
        }

        fn lost(&self) -> LostEvents {
            LostEvents::default()
        }

        fn seek_ns(&mut self, _: u64) -> Result<(), TraceError> {
            Ok(())
        }
    }

    fn frees(end: u64, fails_at: u64) -> Frees {
        Frees { info: TraceInfo::default(), next: 0, end, fails_at }
    }

    /// Returns a linker of chunks of at most 3,000 events. The last 100 events of a chunk are also the first
    /// events of the next chunk.
    fn linker(reader: &mut Frees) -> Linker<'_> {
        let mut numbers = FrameNumbers::default();
        numbers.add_zone(0, 1 << 20);
        Linker {
            chunk_events_max: BLOCK_EVENTS_MAX + 2000,
            look_ahead: 100,
            ..Linker::new(reader, numbers, 1)
        }
    }

    /// The numbers of the events that are compared with one chunk, and whether the last of these events is
    /// linked to a later event of the chunk.
    type Compared = (Vec<u64>, bool);

    /// For each chunk, returns the numbers of the events that are compared with the chunk.
    fn compared(end: u64, fails_at: u64) -> (Vec<Compared>, Result<(), LinkError>) {
        let (mut reader, mut found, mut seen) = (frees(end, fails_at), Vec::new(), 0);
        let result = linker(&mut reader).for_each_chunk(Chunk::default(), |chunk| {
            seen += chunk.seen.len() as u64;
            let last = chunk.events.last().map_or(0, |event| event.pfn);
            assert!(
                chunk.events.is_empty() || seen * 1024 > last,
                "expected numbers for all frames of the chunk's events"
            );
            let events = chunk.events[..chunk.end].iter().map(|event| event.pfn).collect();
            found.push((events, chunk.after(chunk.end.saturating_sub(1)).next().is_some()));
            Ok(())
        });
        (found, result)
    }

    #[test]
    fn each_event_is_compared_once_and_in_order() {
        for end in [0, 1, 1000, 2999, 3000, 3001, 50_000] {
            let (chunks, result) = compared(end, u64::MAX);
            result.expect("a readable recording");
            let events: Vec<u64> = chunks.iter().flat_map(|(events, _)| events).copied().collect();
            assert_eq!(events, (0..end).collect::<Vec<_>>());
            let (_, before_last) = chunks.split_last().expect("at least one chunk");
            assert!(
                before_last.iter().all(|(_, is_linked)| *is_linked),
                "expected links from the last compared event of a chunk to events of the next chunk"
            );
        }
    }

    #[test]
    fn an_error_of_the_reader_comes_after_the_chunks_before_it() {
        let (chunks, result) = compared(50_000, 10_000);
        assert!(matches!(result, Err(LinkError::Trace(_))));
        let events: usize = chunks.iter().map(|(events, _)| events.len()).sum();
        assert!((5000..10_000).contains(&events), "{events} events were compared");
    }

    #[test]
    fn a_comparison_that_fails_or_panics_ends_the_thread() {
        let fail = |count: usize, panics: bool| {
            let (mut reader, mut chunks) = (frees(u64::MAX >> 44, u64::MAX), 0);
            linker(&mut reader).for_each_chunk(Chunk::default(), |_| {
                chunks += 1;
                match chunks == count {
                    true if panics => panic!("expected by the test"),
                    true => Err("no memory".to_owned()),
                    false => Ok(()),
                }
            })
        };
        for count in [1, 2, 5] {
            assert!(matches!(fail(count, false), Err(LinkError::Unusable(_))));
            assert!(catch_unwind(AssertUnwindSafe(|| fail(count, true))).is_err());
        }
    }
}
