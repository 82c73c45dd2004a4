//! The table of event shapes. The shape of an event is all its fields except time and frame.
//!
//! A block of 64 Ki events usually has only some hundred shapes. The block stores each shape once, and for
//! each event the index of its shape. To decode an event, the reader copies only the 16 bytes of its shape,
//! which are usually in the first-level cache. Without shapes, the reader would have to read nine columns.

use std::collections::HashMap;

use super::{
    column::{Column, Columns},
    format::{get_u16, get_u32, put_u16, put_u32},
};
use crate::event::{Event, EventKind};

/// Bytes of a shape.
pub(super) const SHAPE_BYTES: usize = 16;

/// Number of recent shapes that the encoder remembers in a block. 256 shapes suffice for eight CPUs with all
/// kinds of events.
const RECENT: usize = 256;

/// Returns the fields of `event`, except time and frame, as bytes.
#[inline]
pub(super) fn shape_of(event: &Event) -> [u8; SHAPE_BYTES] {
    let mut bytes = [0; SHAPE_BYTES];
    put_u32(&mut bytes, 0, event.gfp);
    put_u32(&mut bytes, 4, event.pid);
    put_u16(&mut bytes, 8, event.cpu);
    bytes[10] = event.kind.code();
    bytes[11] = event.order;
    bytes[12] = event.migratetype as u8;
    bytes[13] = event.refill;
    bytes[14] = event.irq_flags;
    bytes[15] = event.preempt;
    bytes
}

/// Makes an event of this shape at time 0. `None` if the kind of the shape is unknown.
pub(super) fn event_of(bytes: &[u8; SHAPE_BYTES]) -> Option<Event> {
    Some(Event {
        ts_ns: 0,
        pfn: 0,
        gfp: get_u32(bytes, 0),
        pid: get_u32(bytes, 4),
        cpu: get_u16(bytes, 8),
        kind: EventKind::from_code(bytes[10])?,
        order: bytes[11],
        migratetype: bytes[12] as i8,
        refill: bytes[13],
        irq_flags: bytes[14],
        preempt: bytes[15],
    })
}

/// Returns the shapes of a block, and the index of each event's shape. Shapes are sorted by frequency, so
/// that the high byte of most indices is zero.
pub(super) fn collect(events: &[Event]) -> (Vec<[u8; SHAPE_BYTES]>, Vec<u16>) {
    let mut numbers: HashMap<[u8; SHAPE_BYTES], u32> = HashMap::new();
    let mut shapes: Vec<([u8; SHAPE_BYTES], u32)> = Vec::new();
    let mut indices: Vec<u32> = Vec::with_capacity(events.len());
    // Most events of one CPU and kind have the same shape, so most shapes are found without a search.
    let mut recent: [Option<([u8; SHAPE_BYTES], u32)>; RECENT] = [None; RECENT];
    for event in events {
        let shape = shape_of(event);
        let slot = &mut recent[(usize::from(event.kind.code()) | usize::from(event.cpu) << 5) % RECENT];
        let number = match *slot {
            Some((last, number)) if last == shape => number,
            _ => *numbers.entry(shape).or_insert_with(|| {
                shapes.push((shape, 0));
                shapes.len() as u32 - 1
            }),
        };
        *slot = Some((shape, number));
        shapes[number as usize].1 += 1;
        indices.push(number);
    }
    let mut order: Vec<u32> = (0..shapes.len() as u32).collect();
    // Sort shapes of equal frequency by their bytes, so that equal events always give equal files.
    order.sort_unstable_by_key(|number| {
        let (shape, count) = shapes[*number as usize];
        (std::cmp::Reverse(count), shape)
    });
    let mut rank = vec![0_u16; shapes.len()];
    for (place, number) in order.iter().enumerate() {
        rank[*number as usize] = place as u16;
    }
    let table = order.iter().map(|number| shapes[*number as usize].0).collect();
    (table, indices.iter().map(|number| rank[*number as usize]).collect())
}

/// Appends the table. The bytes of all shapes at the same position are written together.
pub(super) fn write_table(
    out: &mut Vec<u8>,
    table: &[[u8; SHAPE_BYTES]],
    compressor: &mut zstd::bulk::Compressor<'_>,
) -> std::io::Result<()> {
    let mut planes = Vec::with_capacity(table.len() * SHAPE_BYTES);
    for byte in 0..SHAPE_BYTES {
        planes.extend(table.iter().map(|shape| shape[byte]));
    }
    super::column::write(out, &planes, compressor)
}

/// Reads a table of `count` shapes into `table`, as events without time and frame.
pub(super) fn read_table(
    columns: &mut Columns<'_>,
    count: usize,
    table: &mut Vec<Event>,
    scratch: &mut Vec<u8>,
    decompressor: &mut zstd::bulk::Decompressor<'_>,
) -> Result<(), &'static str> {
    table.clear();
    let column = columns.next(count * SHAPE_BYTES, scratch, decompressor)?;
    for number in 0..count {
        let mut shape = [0; SHAPE_BYTES];
        for (byte, slot) in shape.iter_mut().enumerate() {
            *slot = match column {
                Column::Constant(value) => value,
                Column::Bytes(planes) => planes[byte * count + number],
            };
        }
        table.push(event_of(&shape).ok_or("an event has an unknown kind")?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_shapes_come_first() {
        let rare = Event::new(EventKind::MmPageAlloc, 1, 7);
        let common = Event { pid: 3, ..Event::new(EventKind::MmPageFree, 2, 1) };
        let (table, indices) = collect(&[rare, common, common]);
        assert_eq!(indices, [1, 0, 0]);
        assert_eq!(table, [shape_of(&common), shape_of(&rare)]);
        let back = event_of(&table[0]).unwrap();
        assert_eq!(Event { ts_ns: 2, ..back }, common);
    }

    #[test]
    fn every_event_of_a_full_block_may_have_its_own_shape() {
        let events: Vec<Event> = (0..crate::reader::BLOCK_EVENTS_MAX as u32)
            .map(|pid| Event { pid, ..Event::new(EventKind::MmPageAlloc, 0, 0) })
            .collect();
        let (table, indices) = collect(&events);
        assert_eq!(table.len(), events.len());
        assert_eq!(indices[65_535], 65_535);
    }
}
