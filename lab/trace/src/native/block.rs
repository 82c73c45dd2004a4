//! Encodes and decodes the payload of a block: shape table, shape indices, times and frames of up to 64 Ki
//! events.
//!
//! The payload begins with a `u32`, the number of shapes. Columns follow (see `column`): the shape table, the
//! indices' low bytes, their high bytes, eight columns of times, eight columns of frames.
//!
//! Each time is stored as the zigzag-encoded difference from the time of the event before it. The first time
//! is stored as the difference from the first time in the block's header.
//!
//! Frames are grouped into *strands*: all frames of one CPU and one kind of event form a strand. Each frame
//! is stored as the zigzag-encoded difference from the previous frame of its strand, and the first frame as
//! the difference from 0. A batched free has two events with the same frame, in two strands. The strands of
//! `mm_page_free` and of the batched free then store the same differences, and the compressor finds the
//! repetition.

use std::collections::HashMap;

use zstd::bulk::{Compressor, Decompressor};

use super::{
    column::{self, Column, Columns, unzigzag, zigzag},
    format::{BlockHeader, PAYLOAD_BYTES_MAX},
    shapes::{self, SHAPE_BYTES},
};
use crate::event::{Event, EventKind};

/// Returns the kinds of `events` as bits. Bit `k` stands for the kind with code `k`.
pub(super) fn kinds(events: &[Event]) -> u32 {
    events.iter().fold(0, |kinds, event| kinds | 1 << event.kind.code())
}

/// Encodes blocks, and reuses its buffers.
pub(super) struct Encoder {
    compressor: Compressor<'static>,
}

/// Decodes blocks, and reuses its buffers.
pub(super) struct Decoder {
    decompressor: Decompressor<'static>,
    scratch: Vec<u8>,
    table: Vec<Event>,
    strands: Strands,
    indices: Vec<u16>,
    times: Vec<u64>,
    frames: Vec<u64>,
}

impl Encoder {
    pub(super) fn new(level: i32) -> std::io::Result<Self> {
        Ok(Self { compressor: Compressor::new(level)? })
    }

    /// Encodes a block of `events`, which must not be empty. Fills `payload`, and returns the block's header.
    pub(super) fn encode(&mut self, events: &[Event], payload: &mut Vec<u8>) -> std::io::Result<BlockHeader> {
        payload.clear();
        let (table, indices) = shapes::collect(events);
        payload.extend((table.len() as u32).to_le_bytes());
        shapes::write_table(payload, &table, &mut self.compressor)?;
        let low: Vec<u8> = indices.iter().map(|index| *index as u8).collect();
        let high: Vec<u8> = indices.iter().map(|index| (index >> 8) as u8).collect();
        column::write(payload, &low, &mut self.compressor)?;
        column::write(payload, &high, &mut self.compressor)?;

        let first_ts_ns = events[0].ts_ns;
        let mut last = first_ts_ns;
        let times: Vec<u64> = events
            .iter()
            .map(|event| {
                let difference = event.ts_ns.wrapping_sub(last);
                last = event.ts_ns;
                zigzag(difference)
            })
            .collect();
        column::write_planes(payload, &times, &mut self.compressor)?;

        let mut strands = Strands::default();
        strands.assign(table.iter().filter_map(shapes::event_of), &indices);
        let mut frames = vec![0; events.len()];
        for (event, index) in events.iter().zip(&indices) {
            let strand = strands.of(usize::from(*index));
            frames[strand.next as usize] = zigzag(event.pfn.wrapping_sub(strand.last));
            strand.next += 1;
            strand.last = event.pfn;
        }
        column::write_planes(payload, &frames, &mut self.compressor)?;

        debug_assert!(payload.len() <= PAYLOAD_BYTES_MAX, "64 Ki events fit, even without compression");
        Ok(BlockHeader {
            payload_bytes: payload.len() as u32,
            events: events.len() as u32,
            crc: crc32fast::hash(payload),
            first_ts_ns,
            last_ts_ns: events.iter().map(|event| event.ts_ns).max().unwrap_or(first_ts_ns),
            kinds: kinds(events),
        })
    }
}

impl Decoder {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            decompressor: Decompressor::new()?,
            scratch: Vec::new(),
            table: Vec::new(),
            strands: Strands::default(),
            indices: Vec::new(),
            times: Vec::new(),
            frames: Vec::new(),
        })
    }

    /// Replaces `events` by the events of the block. The error is a sentence about the problem.
    pub(super) fn decode(
        &mut self,
        header: &BlockHeader,
        payload: &[u8],
        events: &mut Vec<Event>,
    ) -> Result<(), &'static str> {
        events.clear();
        if crc32fast::hash(payload) != header.crc {
            return Err("the block's checksum is wrong");
        }
        let count = header.events as usize;
        let Some((shapes, rest)) = payload.split_first_chunk::<4>() else {
            return Err("the block is cut off");
        };
        let shapes = u32::from_le_bytes(*shapes) as usize;
        if shapes == 0 || shapes > count {
            return Err("the block has no shapes, or more shapes than events");
        }
        let mut columns = Columns { rest };
        shapes::read_table(&mut columns, shapes, &mut self.table, &mut self.scratch, &mut self.decompressor)?;
        self.read_indices(&mut columns, count)?;
        for values in [&mut self.times, &mut self.frames] {
            values.resize(count, 0);
            column::read_planes(&mut columns, values, &mut self.scratch, &mut self.decompressor)?;
        }
        if !columns.rest.is_empty() {
            return Err("the block has bytes after its last column");
        }
        self.assemble(header.first_ts_ns, events)
    }

    fn read_indices(&mut self, columns: &mut Columns<'_>, count: usize) -> Result<(), &'static str> {
        self.indices.resize(count, 0);
        match columns.next(count, &mut self.scratch, &mut self.decompressor)? {
            Column::Constant(byte) => self.indices.fill(u16::from(byte)),
            Column::Bytes(bytes) => {
                for (index, byte) in self.indices.iter_mut().zip(bytes) {
                    *index = u16::from(*byte);
                }
            }
        }
        match columns.next(count, &mut self.scratch, &mut self.decompressor)? {
            Column::Constant(0) => {}
            Column::Constant(byte) => {
                self.indices.iter_mut().for_each(|index| *index |= u16::from(byte) << 8);
            }
            Column::Bytes(bytes) => {
                for (index, byte) in self.indices.iter_mut().zip(bytes) {
                    *index |= u16::from(*byte) << 8;
                }
            }
        }
        Ok(())
    }

    /// Assembles events from the columns.
    fn assemble(&mut self, first_ts_ns: u64, events: &mut Vec<Event>) -> Result<(), &'static str> {
        if self.indices.iter().any(|index| usize::from(*index) >= self.table.len()) {
            return Err("an event's shape is not in the table");
        }
        self.strands.assign(self.table.iter().copied(), &self.indices);
        let mut ts_ns = first_ts_ns;
        events.extend(self.indices.iter().zip(&self.times).map(|(index, time)| {
            let index = usize::from(*index);
            ts_ns = ts_ns.wrapping_add(unzigzag(*time));
            let strand = self.strands.of(index);
            strand.last = strand.last.wrapping_add(unzigzag(self.frames[strand.next as usize]));
            strand.next += 1;
            Event { ts_ns, pfn: strand.last, ..self.table[index] }
        }));
        Ok(())
    }
}

/// Decodes `payload` as a block of `events` events, as if its checksum were correct. Tests use this function
/// for damaged payloads.
pub(crate) fn decode_payload(payload: &[u8], events: u32) -> Result<Vec<Event>, &'static str> {
    let header = BlockHeader {
        payload_bytes: payload.len() as u32,
        events: events.clamp(1, crate::reader::BLOCK_EVENTS_MAX as u32),
        crc: crc32fast::hash(payload),
        first_ts_ns: 0,
        last_ts_ns: 0,
        kinds: 0,
    };
    let mut decoded = Vec::new();
    Decoder::new().map_err(|_| "no memory for the decoder")?.decode(&header, payload, &mut decoded)?;
    Ok(decoded)
}

/// The strands of a block. A strand has the frames of one CPU and one kind of event.
#[derive(Default)]
struct Strands {
    /// The number of each shape's strand.
    of_shape: Vec<u16>,
    strands: Vec<Strand>,
}

/// The position in one strand.
#[derive(Clone, Copy, Default)]
struct Strand {
    /// Index of the strand's next frame in the column.
    next: u32,
    /// The strand's last frame.
    last: u64,
}

impl Strands {
    /// Finds the strands of `shapes`, and numbers them in order of appearance. Computes the place of each
    /// strand in the column of frames, for events with these shape `indices`. Each of the `indices` must be
    /// in the table of shapes.
    fn assign(&mut self, shapes: impl Iterator<Item = Event>, indices: &[u16]) {
        let mut known: HashMap<(u16, EventKind), u16> = HashMap::new();
        self.of_shape.clear();
        for shape in shapes {
            let next = known.len() as u16;
            self.of_shape.push(*known.entry((shape.cpu, shape.kind)).or_insert(next));
        }
        let mut counts = vec![0_u32; known.len()];
        for index in indices {
            counts[usize::from(self.of_shape[usize::from(*index)])] += 1;
        }
        let mut start = 0;
        self.strands.clear();
        for count in counts {
            self.strands.push(Strand { next: start, last: 0 });
            start += count;
        }
    }

    fn of(&mut self, shape: usize) -> &mut Strand {
        &mut self.strands[usize::from(self.of_shape[shape])]
    }
}

const _: () = assert!(SHAPE_BYTES + 16 == size_of::<Event>(), "time and frame are stored apart");

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<Event> {
        let mut ts_ns = 1_000_000_u64;
        (0..5000_u64)
            .map(|number| {
                ts_ns = ts_ns.wrapping_add(number * 7919 % 900).wrapping_sub(3);
                Event {
                    pfn: if number % 97 == 0 { u64::MAX } else { number * number % 70_000 },
                    pid: (number % 5) as u32,
                    gfp: 0x140cca,
                    migratetype: (number % 3) as i8 - 1,
                    ..Event::new(
                        EventKind::ALL[number as usize % EventKind::COUNT],
                        ts_ns,
                        (number % 4) as u16,
                    )
                }
            })
            .collect()
    }

    #[test]
    fn blocks_survive() {
        let mut encoder = Encoder::new(3).unwrap();
        let mut decoder = Decoder::new().unwrap();
        let (mut payload, mut back) = (Vec::new(), Vec::new());
        for count in [1, 2, 255, 5000] {
            let events = &events()[..count];
            let header = encoder.encode(events, &mut payload).unwrap();
            assert_eq!(header.events as usize, count);
            decoder.decode(&header, &payload, &mut back).unwrap();
            assert_eq!(back, events);
        }
    }

    #[test]
    fn random_events_fit_the_payload_limit() {
        let mut state = 1_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let events: Vec<Event> = (0..crate::reader::BLOCK_EVENTS_MAX)
            .map(|_| Event {
                ts_ns: random(),
                pfn: random(),
                gfp: random() as u32,
                pid: random() as u32,
                cpu: random() as u16,
                kind: EventKind::MmPageAlloc,
                order: random() as u8,
                migratetype: random() as i8,
                refill: random() as u8,
                irq_flags: random() as u8,
                preempt: random() as u8,
            })
            .collect();
        let mut payload = Vec::new();
        let header = Encoder::new(1).unwrap().encode(&events, &mut payload).unwrap();
        assert!(payload.len() <= PAYLOAD_BYTES_MAX);
        let mut back = Vec::new();
        Decoder::new().unwrap().decode(&header, &payload, &mut back).unwrap();
        assert_eq!(back, events);
    }

    #[test]
    fn damage_with_a_right_checksum_is_still_an_error_or_other_events() {
        let mut payload = Vec::new();
        let header = Encoder::new(3).unwrap().encode(&events(), &mut payload).unwrap();
        let mut decoder = Decoder::new().unwrap();
        let mut back = Vec::new();
        assert!(decoder.decode(&BlockHeader { crc: 0, ..header }, &payload, &mut back).is_err());
        for at in (0..payload.len()).step_by(payload.len() / 400 + 1) {
            let mut damaged = payload.clone();
            damaged[at] ^= 0x41;
            let header = BlockHeader { crc: crc32fast::hash(&damaged), ..header };
            if decoder.decode(&header, &damaged, &mut back).is_ok() {
                assert_eq!(back.len(), header.events as usize);
            }
            let cut = BlockHeader { crc: crc32fast::hash(&payload[..at]), ..header };
            assert!(decoder.decode(&cut, &payload[..at], &mut back).is_err(), "cut at {at}");
        }
    }
}
