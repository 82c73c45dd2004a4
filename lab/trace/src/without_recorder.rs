//! Reads a trace without the recorder's own pages.

use std::collections::HashSet;

use crate::{
    amount::Amount,
    error::TraceError,
    event::{Event, EventKind},
    info::{LostEvents, TraceInfo},
    reader::TraceReader,
};

/// Removes the events of pages that the threads in [`TraceInfo::recorder_pids`] allocated: the allocations,
/// and the frees by any task.
///
/// Events of refills and drains are not removed, even if the recorder caused these events, because a refill
/// or drain may also move pages of other tasks. The reader keeps the recorder's frames in memory.
pub struct WithoutRecorder<R> {
    reader: R,
    info: TraceInfo,
    pids: HashSet<u32>,
    frames: Frames,
    left_out: u64,
}

/// First words of the entry in [`TraceInfo::not_recorded`] of a recorder that does not know its own threads.
/// The reason follows these words.
pub const RECORDER_UNKNOWN: &str = "which threads are the recorder's";

/// Frames that the recorder has allocated.
#[derive(Debug, Default)]
struct Frames {
    /// Frames in use, by the first frame of their block.
    held: HashSet<u64>,
    /// Freed frames. If the free was in a batch, the event that the frame reaches its page set is still to
    /// come.
    freed: HashSet<u64>,
}

impl<R: TraceReader> WithoutRecorder<R> {
    /// Makes a reader that filters the remaining events of `reader`. A trace that names no recorder threads
    /// stays unchanged.
    pub fn new(reader: R) -> Self {
        let mut info = reader.info().clone();
        let pids: HashSet<u32> = std::mem::take(&mut info.recorder_pids).into_iter().collect();
        if !pids.is_empty() {
            info.events = None;
            info.not_recorded.push("pages of the recorder: left out".to_owned());
        }
        Self { reader, info, pids, frames: Frames::default(), left_out: 0 }
    }

    /// Number of events removed so far.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

impl Frames {
    /// Whether an event is about one of the recorder's pages.
    fn has(&mut self, event: &Event, pids: &HashSet<u32>) -> bool {
        let pfn = event.pfn;
        match event.kind {
            EventKind::MmPageAlloc => {
                self.freed.remove(&pfn);
                let is_own = pids.contains(&event.pid);
                if is_own && event.frame().is_some() {
                    self.held.insert(pfn);
                } else if !is_own {
                    // Another task allocates the frame, so the event of the recorder's free was lost.
                    self.held.remove(&pfn);
                }
                is_own
            }
            EventKind::MmPageFree => {
                let is_own = self.held.remove(&pfn);
                if is_own {
                    self.freed.insert(pfn);
                }
                is_own
            }
            EventKind::MmPageFreeBatched => self.freed.remove(&pfn),
            _ => false,
        }
    }
}

impl<R: TraceReader> TraceReader for WithoutRecorder<R> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn amount(&self) -> Amount {
        self.reader.amount().or_events(self.info.events)
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        loop {
            let read = self.reader.read_block(events)?;
            events.retain(|event| !self.frames.has(event, &self.pids));
            self.left_out += (read - events.len()) as u64;
            if read == 0 || !events.is_empty() {
                return Ok(events.len());
            }
        }
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.reader.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.reader.lost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given(TraceInfo, Vec<Event>);

    impl TraceReader for Given {
        fn info(&self) -> &TraceInfo {
            &self.0
        }

        fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
            // Events are read one at a time here, so a block may be empty after the filter.
            events.clear();
            if !self.1.is_empty() {
                events.push(self.1.remove(0));
            }
            Ok(events.len())
        }

        fn has_ticks(&mut self, _: &mut dyn FnMut()) -> Result<bool, TraceError> {
            Ok(false)
        }

        fn lost(&self) -> LostEvents {
            LostEvents::default()
        }
    }

    fn rest(pids: &[u32], given: &[(EventKind, u64, u32)]) -> (Vec<(EventKind, u64)>, u64) {
        let event = |(at, (kind, pfn, pid)): (usize, &(EventKind, u64, u32))| Event {
            pfn: *pfn,
            pid: *pid,
            ..Event::new(*kind, at as u64, 0)
        };
        let info = TraceInfo { recorder_pids: pids.to_vec(), ..TraceInfo::default() };
        let mut reader = WithoutRecorder::new(Given(info, given.iter().enumerate().map(event).collect()));
        let (mut all, mut block) = (Vec::new(), Vec::new());
        while reader.read_block(&mut block).unwrap() > 0 {
            all.extend(block.iter().map(|event| (event.kind, event.pfn)));
        }
        (all, reader.left_out())
    }

    use EventKind::{MmPageAlloc, MmPageFree, MmPageFreeBatched, MmPagePcpuDrain};

    #[test]
    fn pages_of_the_recorder_go_even_if_another_task_frees_them() {
        let (rest, left_out) = rest(
            &[7],
            &[
                (MmPageAlloc, 1, 7),
                (MmPageAlloc, 2, 5),
                (MmPagePcpuDrain, 9, 7),
                (MmPageFree, 2, 7),
                (MmPageFreeBatched, 2, 7),
                (MmPageFree, 1, 5),
                (MmPageFreeBatched, 1, 5),
                (MmPageAlloc, 1, 5),
                (MmPageFree, 1, 5),
                (MmPageFreeBatched, 1, 5),
            ],
        );
        let (alloc, free, batched) = (MmPageAlloc, MmPageFree, MmPageFreeBatched);
        let expected =
            [(alloc, 2), (MmPagePcpuDrain, 9), (free, 2), (batched, 2), (alloc, 1), (free, 1), (batched, 1)];
        assert_eq!((rest.as_slice(), left_out), (expected.as_slice(), 3));
    }

    #[test]
    fn a_page_whose_free_was_lost_belongs_to_the_next_user() {
        let (rest, left_out) = rest(&[7], &[(MmPageAlloc, 1, 7), (MmPageAlloc, 1, 5), (MmPageFree, 1, 5)]);
        assert_eq!((rest.len(), left_out), (2, 1));
    }

    #[test]
    fn a_trace_without_a_recorder_stays_as_it_is() {
        let (rest, left_out) = rest(&[], &[(MmPageAlloc, 1, 0), (MmPageFree, 1, 0)]);
        assert_eq!((rest.len(), left_out), (2, 0));
    }
}
