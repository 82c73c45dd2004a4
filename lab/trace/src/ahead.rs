//! Reads and decompresses the next blocks of a recording on a separate thread, while the caller works on the
//! last block.

use std::{
    collections::VecDeque,
    mem, panic, process,
    sync::mpsc::{Receiver, Sender, channel},
    thread::{Builder, JoinHandle},
};

use crate::{
    amount::Amount,
    error::TraceError,
    event::Event,
    info::{LostEvents, TraceInfo},
    reader::TraceReader,
};

/// Number of blocks that the thread may hold: one block that it fills, and one that waits for the caller. A
/// block takes 2 MiB.
const BLOCKS_AHEAD: usize = 2;

/// A reader that reads blocks ahead of the caller.
pub(crate) struct AheadReader {
    info: TraceInfo,
    amount: Amount,
    /// The reader. `None` while a thread has the reader.
    reader: Option<Box<dyn TraceReader>>,
    ahead: Option<Ahead>,
    /// Whether the first block was read. Many recordings have only one block, so the first block is read
    /// without a thread.
    is_begun: bool,
    /// Blocks that the thread had read before the thread was stopped.
    waiting: VecDeque<Block>,
    /// Events that were lost up to the last block that the caller received.
    lost: LostEvents,
}

/// A block of events, and the number of events that were lost up to the end of this block.
type Block = Result<(Vec<Event>, LostEvents), TraceError>;

struct Ahead {
    blocks: Receiver<Block>,
    /// Sends empty buffers to the thread, which fills each buffer with one block. The thread ends when this
    /// sender is dropped.
    buffers: Sender<Vec<Event>>,
    thread: JoinHandle<Box<dyn TraceReader>>,
    /// The process that started the thread. In a forked child process, the thread does not exist.
    process: u32,
}

impl AheadReader {
    pub(crate) fn new(reader: Box<dyn TraceReader>) -> Self {
        let (info, amount, lost) = (reader.info().clone(), reader.amount(), reader.lost());
        let (reader, waiting) = (Some(reader), VecDeque::new());
        Self { info, amount, reader, ahead: None, is_begun: false, waiting, lost }
    }

    /// Takes the reader back from the thread, and stops the thread. The caller still gets all blocks that the
    /// thread has read.
    fn here(&mut self) -> Result<&mut Box<dyn TraceReader>, TraceError> {
        if let Some(ahead) = &self.ahead {
            check_process(ahead, &self.info)?;
        }
        if let Some(Ahead { blocks, buffers, thread, .. }) = self.ahead.take() {
            drop(buffers);
            self.reader = Some(thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
            self.waiting.extend(blocks.try_iter());
        }
        Ok(self.reader.as_mut().expect("no thread has the reader"))
    }

    /// Starts a thread that reads ahead, and gives the reader to the thread. If the system starts no thread,
    /// the caller keeps the reader.
    fn go_ahead(&mut self) {
        let (give, given) = channel::<Box<dyn TraceReader>>();
        let (buffers, to_fill) = channel::<Vec<Event>>();
        let (filled, blocks) = channel();
        let work = move || {
            let mut reader = given.recv().expect("the reader follows the thread");
            while let Ok(mut events) = to_fill.recv() {
                let read = reader.read_block(&mut events);
                let is_last = !matches!(read, Ok(1..));
                let block = read.map(|_| (events, reader.lost()));
                // Race: the caller stops this thread while the thread reads a block. No block is lost: the
                // block stays in the channel, and the caller takes it from there. If the caller has dropped
                // the reader, no block is needed.
                if filled.send(block).is_err() || is_last {
                    break;
                }
            }
            reader
        };
        let Ok(thread) = Builder::new().name("read".to_owned()).spawn(work) else { return };
        let Some(reader) = self.reader.take() else { return };
        // The new thread waits for the reader and then for buffers, so the sends of the reader and of the
        // buffers succeed.
        drop(give.send(reader));
        for _ in 0..BLOCKS_AHEAD {
            drop(buffers.send(Vec::new()));
        }
        self.ahead = Some(Ahead { blocks, buffers, thread, process: process::id() });
    }
}

fn check_process(ahead: &Ahead, info: &TraceInfo) -> Result<(), TraceError> {
    match ahead.process == process::id() {
        true => Ok(()),
        false => Err(TraceError::file(
            &info.path,
            "was opened before a fork, and the thread that reads it is the parent's",
            "open it again in the child",
        )),
    }
}

impl TraceReader for AheadReader {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn amount(&self) -> Amount {
        self.amount.clone()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        events.clear();
        if self.waiting.is_empty() && self.is_begun && self.ahead.is_none() {
            self.go_ahead();
        }
        let next = match (self.waiting.pop_front(), &self.ahead) {
            (Some(block), _) => block,
            (None, Some(ahead)) => {
                check_process(ahead, &self.info)?;
                match ahead.blocks.recv() {
                    Ok(block) => block,
                    // The thread ended after the last block.
                    Err(_) => return self.here()?.read_block(events),
                }
            }
            (None, None) => {
                self.is_begun = true;
                let reader = self.here()?;
                let count = reader.read_block(events)?;
                self.lost = reader.lost();
                return Ok(count);
            }
        };
        let (block, lost) = next?;
        self.lost = lost;
        let spent = mem::replace(events, block);
        if let Some(ahead) = &self.ahead {
            drop(ahead.buffers.send(spent));
        }
        Ok(events.len())
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        let is_in_rest = self.here()?.has_ticks(progress)?;
        let mut ahead = self.waiting.iter().filter_map(|block| block.as_ref().ok());
        let has_ticks = is_in_rest || ahead.any(|(events, _)| events.iter().any(Event::is_tick));
        if self.waiting.is_empty() {
            self.lost = self.here()?.lost();
        }
        Ok(has_ticks)
    }

    fn lost(&self) -> LostEvents {
        self.lost
    }

    fn seek_ns(&mut self, ts_ns: u64) -> Result<(), TraceError> {
        self.here()?.seek_ns(ts_ns)?;
        self.waiting.clear();
        self.lost = self.here()?.lost();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc, thread};

    use super::*;
    use crate::event::EventKind;

    /// A reader of blocks with one event each, numbered from 0. The reader reports that one event is lost
    /// before each block.
    struct Numbers {
        info: TraceInfo,
        next: u64,
        end: u64,
        fails_at: Option<u64>,
        /// A counter that shows whether this test's reader still exists.
        _alive: Arc<()>,
    }

    impl TraceReader for Numbers {
        fn info(&self) -> &TraceInfo {
            &self.info
        }

        fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
            events.clear();
            if self.fails_at == Some(self.next) {
                return Err(TraceError::file(Path::new("numbers"), "is damaged", "none"));
            }
            if self.next < self.end {
                events.push(Event { pfn: self.next, ..Event::new(EventKind::MmPageAlloc, 0, 0) });
                self.next += 1;
            }
            Ok(events.len())
        }

        fn has_ticks(&mut self, _: &mut dyn FnMut()) -> Result<bool, TraceError> {
            Ok(false)
        }

        fn lost(&self) -> LostEvents {
            LostEvents { malformed_lines: self.next, ..LostEvents::default() }
        }

        fn seek_ns(&mut self, ts_ns: u64) -> Result<(), TraceError> {
            self.next = ts_ns;
            Ok(())
        }
    }

    fn numbers(end: u64, fails_at: Option<u64>) -> (AheadReader, Arc<()>) {
        let alive = Arc::new(());
        let info = TraceInfo::default();
        let reader = Numbers { info, next: 0, end, fails_at, _alive: Arc::clone(&alive) };
        (AheadReader::new(Box::new(reader)), alive)
    }

    fn next(reader: &mut AheadReader) -> Option<u64> {
        let mut events = Vec::new();
        let count = reader.read_block(&mut events).unwrap();
        assert_eq!(count, events.len());
        events.first().map(|event| event.pfn)
    }

    #[test]
    fn blocks_come_in_order_and_losses_are_those_up_to_the_block() {
        for end in [0, 1, 2, 3, 100] {
            let (mut reader, _) = numbers(end, None);
            for number in 0..end {
                assert_eq!(next(&mut reader), Some(number));
                assert_eq!(reader.lost().malformed_lines, number + 1);
            }
            for _ in 0..3 {
                assert_eq!(next(&mut reader), None);
                assert_eq!(reader.lost().malformed_lines, end);
            }
        }
    }

    #[test]
    fn questions_and_jumps_in_the_middle_change_no_block_and_lose_none() {
        for at in 0..5 {
            let (mut reader, _) = numbers(8, None);
            for number in 0..at {
                assert_eq!(next(&mut reader), Some(number));
            }
            assert!(!reader.has_ticks(&mut || {}).unwrap());
            for number in at..8 {
                assert_eq!(next(&mut reader), Some(number));
            }
            assert_eq!(next(&mut reader), None);
            reader.seek_ns(3).unwrap();
            assert_eq!(next(&mut reader), Some(3));
        }
    }

    #[test]
    fn an_error_comes_after_the_blocks_before_it_and_stays() {
        for at in 0..5 {
            let (mut reader, _) = numbers(8, Some(at));
            for number in 0..at {
                assert_eq!(next(&mut reader), Some(number));
            }
            for _ in 0..3 {
                assert!(reader.read_block(&mut Vec::new()).is_err());
            }
        }
    }

    #[test]
    fn a_reader_that_is_dropped_early_ends_its_thread() {
        let (mut reader, alive) = numbers(u64::MAX, None);
        assert_eq!((next(&mut reader), next(&mut reader)), (Some(0), Some(1)));
        drop(reader);
        while Arc::strong_count(&alive) > 1 {
            thread::yield_now();
        }
    }
}
