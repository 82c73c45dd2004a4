//! Encodes blocks of events on the caller's thread or on further threads, and returns the blocks in order.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use super::{block::Encoder, format::BlockHeader};
use crate::event::Event;
use crate::reader::BLOCK_EVENTS_MAX;
use crate::workers;

/// An encoded block.
pub(super) struct Encoded {
    pub(super) events: Vec<Event>,
    pub(super) header: BlockHeader,
    pub(super) payload: Vec<u8>,
}

/// The encoders of a file.
pub(super) struct Encoders {
    /// The encoder that the caller's thread uses. `None` if there are further threads.
    here: Option<Encoder>,
    /// Gives blocks to the threads, each with the place for its result. The threads end when this sender is
    /// dropped.
    queue: Option<SyncSender<(Vec<Event>, Place)>>,
    /// The results in order.
    places: VecDeque<Receiver<io::Result<Encoded>>>,
    /// Number of blocks that may wait in the encoders. With more blocks than this number, the caller waits
    /// for a result.
    room: usize,
    spare: Vec<Vec<Event>>,
}

type Place = SyncSender<io::Result<Encoded>>;

/// Tells [`Encoders::take`] when to wait for the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Wait only if more than `Encoders::room` blocks were given and not yet taken.
    UnlessThereIsRoom,
    /// Wait for the next block in every case.
    ForAll,
}

impl Encoders {
    /// Starts this number of threads, or fewer if the system refuses some threads. If no thread was started,
    /// the caller's thread encodes.
    pub(super) fn new(level: i32, threads: usize) -> io::Result<Self> {
        let (queue, blocks) = sync_channel::<(Vec<Event>, Place)>(threads.max(1));
        let blocks = Arc::new(Mutex::new(blocks));
        let mut started = 0;
        for _ in 0..threads {
            let mut encoder = Encoder::new(level)?;
            let work = move |events| encode(&mut encoder, events);
            started += usize::from(workers::start("encode", &blocks, work).is_ok());
        }
        let here = if started == 0 { Some(Encoder::new(level)?) } else { None };
        Ok(Self {
            here,
            queue: (started > 0).then_some(queue),
            places: VecDeque::new(),
            room: 2 * started,
            spare: Vec::new(),
        })
    }

    /// Gives a block of events to the encoders. The block must not be empty.
    pub(super) fn give(&mut self, events: Vec<Event>) -> io::Result<()> {
        let (place, result) = sync_channel(1);
        match (&mut self.here, &self.queue) {
            (Some(encoder), _) => drop(place.send(encode(encoder, events))),
            (None, Some(queue)) => queue.send((events, place)).map_err(|_| ended())?,
            (None, None) => return Err(ended()),
        }
        self.places.push_back(result);
        Ok(())
    }

    /// Takes the next encoded block in order, and waits until this block is encoded. Returns `None` if all
    /// blocks are taken. With [`Wait::UnlessThereIsRoom`], also returns `None` if at most `room` blocks were
    /// given and not yet taken.
    pub(super) fn take(&mut self, wait: Wait) -> io::Result<Option<Encoded>> {
        if wait == Wait::UnlessThereIsRoom && self.places.len() <= self.room {
            return Ok(None);
        }
        let Some(place) = self.places.pop_front() else { return Ok(None) };
        place.recv().map_err(|_| ended())?.map(Some)
    }

    /// Returns an empty buffer for a block of events.
    pub(super) fn spare(&mut self) -> Vec<Event> {
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK_EVENTS_MAX))
    }

    /// Takes back the buffer of a block, to reuse it.
    pub(super) fn recycle(&mut self, mut events: Vec<Event>) {
        events.clear();
        self.spare.push(events);
    }
}

fn encode(encoder: &mut Encoder, events: Vec<Event>) -> io::Result<Encoded> {
    let mut payload = Vec::new();
    let header = encoder.encode(&events, &mut payload)?;
    Ok(Encoded { events, header, payload })
}

/// The error for an encoder's thread that has ended too early. The thread has panicked and printed a message.
fn ended() -> io::Error {
    io::Error::other("a thread that encodes blocks has ended")
}
