//! The recorder's column file: one JSON line, then complete columns of little-endian numbers.
//!
//! Events are read in blocks. For each block, the part of every column is sought and read. So the block
//! bounds memory, whatever the file claims. A compressed file is first decompressed into a spool file (see
//! `input`).

use std::{
    io::{Read, SeekFrom},
    path::Path,
};

use serde::Deserialize;

use crate::{
    error::TraceError,
    event::{Event, EventKind},
    info::{LostEvents, TraceInfo},
    input::Seekable,
    reader::{BLOCK_EVENTS_MAX, TraceReader},
};

/// Number of the format's kinds. They have the codes of [`EventKind`], which has more kinds.
const KINDS: u8 = 20;
/// Maximum bytes of the first line. With all columns it has about 350.
const HEADER_BYTES_MAX: usize = 16 << 10;
const REMEDY_DAMAGED: &str = "copy the recording again";
const REMEDY_NEWER: &str = "it may be from a newer recorder: update this program";

/// Whether `head` begins like a column file.
pub(crate) fn looks_pcpt(head: &[u8]) -> bool {
    let head = &head[..head.len().min(64)];
    head.starts_with(b"{") && head.windows(7).any(|window| window == b"\"PCPT1\"")
}

#[derive(Deserialize)]
struct Header {
    magic: String,
    n: u64,
    t0: u64,
    cols: Vec<(String, String, u8, String)>,
}

/// Reads a column file.
pub(crate) struct PcptReader {
    info: TraceInfo,
    file: Box<dyn Seekable>,
    columns: Vec<Column>,
    events: u64,
    next: u64,
    last_ts_ns: u64,
    lost: LostEvents,
    raw: Vec<u8>,
    values: Vec<u64>,
}

#[derive(Clone)]
struct Column {
    field: Field,
    is_delta: bool,
    is_signed: bool,
    width_bytes: u8,
    /// Offset of the column's first value.
    offset: u64,
    /// Sum so far, for delta columns.
    sum: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Ts,
    Pfn,
    Gfp,
    Pid,
    Cpu,
    Kind,
    Order,
    Migratetype,
    Refill,
    IrqFlags,
    Preempt,
}

impl Field {
    /// Both spellings occur: long ones in the format's description, short ones in files.
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "ts" => Self::Ts,
            "pfn" => Self::Pfn,
            "gfp" => Self::Gfp,
            "pid" => Self::Pid,
            "cpu" => Self::Cpu,
            "kind" => Self::Kind,
            "order" => Self::Order,
            "migratetype" | "mt" => Self::Migratetype,
            "refill" => Self::Refill,
            "flags" => Self::IrqFlags,
            "preempt" | "pre" => Self::Preempt,
            _ => return None,
        })
    }
}

impl PcptReader {
    pub(crate) fn new(mut info: TraceInfo, mut file: Box<dyn Seekable>) -> Result<Self, TraceError> {
        let path = info.path.clone();
        let (header, header_bytes) = read_header(&path, &mut file)?;
        if let Some(events) = info.events
            && events != header.n
        {
            return Err(TraceError::file(
                &path,
                format!("holds {} events, but its side file says {events}", header.n),
                "use the side file that was recorded with this trace",
            ));
        }
        let columns = columns(&path, &header, header_bytes, &mut file)?;
        info.events = Some(header.n);
        Ok(Self {
            lost: info.lost,
            info,
            file,
            columns,
            events: header.n,
            next: 0,
            last_ts_ns: 0,
            raw: Vec::new(),
            values: Vec::new(),
        })
    }
}

fn read_header(path: &Path, file: &mut Box<dyn Seekable>) -> Result<(Header, u64), TraceError> {
    let mut head = Vec::new();
    file.by_ref()
        .take(HEADER_BYTES_MAX as u64)
        .read_to_end(&mut head)
        .map_err(|error| TraceError::io(path, "read", error))?;
    let end = head.iter().position(|byte| *byte == b'\n').ok_or_else(|| {
        TraceError::offset(path, 0, "the first line does not end within 16 KiB", REMEDY_DAMAGED)
    })?;
    let header: Header = serde_json::from_slice(&head[..end]).map_err(|error| {
        TraceError::line(path, 1, format!("the description of the columns is wrong: {error}"), REMEDY_DAMAGED)
    })?;
    if header.magic != "PCPT1" {
        return Err(TraceError::line(path, 1, format!("unknown magic {:?}", header.magic), REMEDY_NEWER));
    }
    Ok((header, end as u64 + 1))
}

/// Checks the header's columns against the file's size.
fn columns(
    path: &Path,
    header: &Header,
    header_bytes: u64,
    file: &mut Box<dyn Seekable>,
) -> Result<Vec<Column>, TraceError> {
    let mut columns: Vec<Column> = Vec::new();
    let mut offset = u128::from(header_bytes);
    for (name, encoding, width, sign) in &header.cols {
        let wrong =
            |problem: String| TraceError::line(path, 1, format!("column {name:?}: {problem}"), REMEDY_NEWER);
        let field = Field::from_name(name).ok_or_else(|| wrong("unknown name".into()))?;
        if columns.iter().any(|column| column.field == field) {
            return Err(wrong("is there twice".into()));
        }
        let is_delta = match encoding.as_str() {
            "raw" => false,
            "delta" => true,
            other => return Err(wrong(format!("unknown encoding {other:?}"))),
        };
        let is_signed = match sign.as_str() {
            "u" => false,
            "i" => true,
            other => return Err(wrong(format!("unknown type {other:?}"))),
        };
        if ![1, 2, 4, 8].contains(width) {
            return Err(wrong(format!("values of {width} bytes")));
        }
        columns.push(Column {
            field,
            is_delta,
            is_signed,
            width_bytes: *width,
            offset: u64::try_from(offset).unwrap_or(u64::MAX),
            sum: if field == Field::Ts { header.t0 } else { 0 },
        });
        offset += u128::from(header.n) * u128::from(*width);
    }
    for (field, name) in [(Field::Ts, "ts"), (Field::Pfn, "pfn"), (Field::Cpu, "cpu"), (Field::Kind, "kind")]
    {
        if !columns.iter().any(|column| column.field == field) {
            return Err(TraceError::line(path, 1, format!("there is no column {name:?}"), REMEDY_DAMAGED));
        }
    }
    let size = file.seek(SeekFrom::End(0)).map_err(|error| TraceError::io(path, "find the end of", error))?;
    if u128::from(size) != offset {
        return Err(TraceError::offset(
            path,
            size,
            format!("the file ends here, but {} events need {offset} bytes", header.n),
            REMEDY_DAMAGED,
        ));
    }
    Ok(columns)
}

impl TraceReader for PcptReader {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        events.clear();
        let count = (self.events - self.next).min(BLOCK_EVENTS_MAX as u64) as usize;
        if count == 0 {
            return Ok(0);
        }
        events.resize(count, Event::new(EventKind::MmPageAlloc, 0, 0));
        for index in 0..self.columns.len() {
            if let Err(error) = self.read_column(index, events) {
                events.clear();
                self.next = self.events;
                return Err(error);
            }
        }
        for event in events.iter() {
            self.lost.out_of_order += u64::from(event.ts_ns < self.last_ts_ns);
            self.last_ts_ns = event.ts_ns;
        }
        self.next += count as u64;
        Ok(count)
    }

    fn has_ticks(&mut self) -> Result<bool, TraceError> {
        let (next, columns) = (self.next, self.columns.clone());
        let found = self.find_tick();
        (self.next, self.columns) = (next, columns);
        found
    }

    fn lost(&self) -> LostEvents {
        self.lost
    }
}

impl PcptReader {
    /// Whether a tick is still to come. Reads the two columns that show it, and advances in them.
    fn find_tick(&mut self) -> Result<bool, TraceError> {
        let mut events = Vec::new();
        while self.next < self.events {
            let count = (self.events - self.next).min(BLOCK_EVENTS_MAX as u64) as usize;
            events.clear();
            events.resize(count, Event::new(EventKind::MmPageAlloc, 0, 0));
            for index in 0..self.columns.len() {
                if matches!(self.columns[index].field, Field::Kind | Field::Order) {
                    self.read_column(index, &mut events)?;
                }
            }
            if events.iter().any(Event::is_tick) {
                return Ok(true);
            }
            self.next += count as u64;
        }
        Ok(false)
    }

    /// Reads the next `events.len()` values of column `index` into the events.
    fn read_column(&mut self, index: usize, events: &mut [Event]) -> Result<(), TraceError> {
        let column = &mut self.columns[index];
        let width = usize::from(column.width_bytes);
        let start = column.offset + self.next * width as u64;
        self.raw.resize(events.len() * width, 0);
        self.file
            .seek(SeekFrom::Start(start))
            .and_then(|_| self.file.read_exact(&mut self.raw))
            .map_err(|error| TraceError::io(&self.info.path, "read", error))?;
        column.decode(&self.raw, &mut self.values);
        let values = &self.values;
        let path = &self.info.path;
        store(column.field, values, events).map_err(|at| {
            TraceError::offset(
                path,
                start + (at * width) as u64,
                format!(
                    "event {} has {} = {}, which is out of range",
                    self.next + at as u64,
                    name_of(column.field),
                    values[at]
                ),
                "the file is damaged or from a newer recorder: copy it again or update this program",
            )
        })
    }
}

impl Column {
    fn decode(&mut self, raw: &[u8], values: &mut Vec<u64>) {
        values.clear();
        match (self.width_bytes, self.is_signed) {
            (1, false) => values.extend(raw.iter().map(|byte| u64::from(*byte))),
            (1, true) => values.extend(raw.iter().map(|byte| *byte as i8 as u64)),
            (2, false) => values.extend(chunks(raw).map(|bytes| u64::from(u16::from_le_bytes(bytes)))),
            (2, true) => values.extend(chunks(raw).map(|bytes| i16::from_le_bytes(bytes) as u64)),
            (4, false) => values.extend(chunks(raw).map(|bytes| u64::from(u32::from_le_bytes(bytes)))),
            (4, true) => values.extend(chunks(raw).map(|bytes| i32::from_le_bytes(bytes) as u64)),
            _ => values.extend(chunks(raw).map(u64::from_le_bytes)),
        }
        if self.is_delta {
            for value in values {
                self.sum = self.sum.wrapping_add(*value);
                *value = self.sum;
            }
        }
    }
}

fn chunks<const N: usize>(raw: &[u8]) -> impl ExactSizeIterator<Item = [u8; N]> {
    raw.as_chunks::<N>().0.iter().copied()
}

/// Stores `values` in the events' `field`. The error is the index of a value that does not fit.
fn store(field: Field, values: &[u64], events: &mut [Event]) -> Result<(), usize> {
    fn each(
        values: &[u64],
        events: &mut [Event],
        set: impl Fn(&mut Event, u64) -> Option<()>,
    ) -> Result<(), usize> {
        for (at, (event, value)) in events.iter_mut().zip(values).enumerate() {
            set(event, *value).ok_or(at)?;
        }
        Ok(())
    }
    /// Converts `value` to a narrower type.
    fn put<T: TryFrom<u64>>(slot: &mut T, value: u64) -> Option<()> {
        *slot = T::try_from(value).ok()?;
        Some(())
    }
    match field {
        Field::Ts => each(values, events, |event, value| put(&mut event.ts_ns, value)),
        Field::Pfn => each(values, events, |event, value| put(&mut event.pfn, value)),
        Field::Gfp => each(values, events, |event, value| put(&mut event.gfp, value)),
        Field::Pid => each(values, events, |event, value| put(&mut event.pid, value)),
        Field::Cpu => each(values, events, |event, value| put(&mut event.cpu, value)),
        Field::Kind => each(values, events, |event, value| {
            event.kind = EventKind::from_code(u8::try_from(value).ok().filter(|code| *code <= KINDS)?)?;
            Some(())
        }),
        Field::Order => each(values, events, |event, value| put(&mut event.order, value)),
        Field::Migratetype => each(values, events, |event, value| {
            event.migratetype = i8::try_from(value as i64).ok()?;
            Some(())
        }),
        Field::Refill => each(values, events, |event, value| put(&mut event.refill, value)),
        Field::IrqFlags => each(values, events, |event, value| put(&mut event.irq_flags, value)),
        Field::Preempt => each(values, events, |event, value| put(&mut event.preempt, value)),
    }
}

const fn name_of(field: Field) -> &'static str {
    match field {
        Field::Ts => "ts",
        Field::Pfn => "pfn",
        Field::Gfp => "gfp",
        Field::Pid => "pid",
        Field::Cpu => "cpu",
        Field::Kind => "kind",
        Field::Order => "order",
        Field::Migratetype => "migratetype",
        Field::Refill => "refill",
        Field::IrqFlags => "flags",
        Field::Preempt => "preempt",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A file of two events, with this header and body.
    fn open(header: &str, body: &[u8]) -> Result<PcptReader, TraceError> {
        let mut bytes = header.as_bytes().to_vec();
        bytes.push(b'\n');
        bytes.extend(body);
        let info = TraceInfo { path: "t.pcpt".into(), ..TraceInfo::default() };
        PcptReader::new(info, Box::new(Cursor::new(bytes)))
    }

    const HEADER: &str = r#"{"magic":"PCPT1","n":2,"t0":1000,"cols":[["ts","delta",4,"u"],["pfn","raw",8,"u"],["cpu","raw",2,"u"],["kind","raw",1,"u"],["mt","raw",1,"i"]]}"#;
    const BODY: &[u8] = &[
        0, 0, 0, 0, 5, 0, 0, 0, // ts
        7, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, // pfn
        0, 0, 1, 0, // cpu
        2, 1, // kind
        255, 1, // mt
    ];

    #[test]
    fn columns_become_events() {
        let mut reader = open(HEADER, BODY).unwrap();
        let mut events = Vec::new();
        assert_eq!(reader.read_block(&mut events).unwrap(), 2);
        assert_eq!((events[0].ts_ns, events[0].pfn, events[0].migratetype), (1000, 7, -1));
        assert_eq!((events[1].ts_ns, events[1].cpu, events[1].migratetype), (1005, 1, 1));
        assert!(events[1].is_failed_allocation());
        assert_eq!(reader.read_block(&mut events).unwrap(), 0);
        assert!(events.is_empty());
    }

    #[test]
    fn a_look_ahead_for_ticks_leaves_the_reader_where_it_is() {
        let header = HEADER.replace("[\"mt\",\"raw\",1,\"i\"]", "[\"order\",\"raw\",1,\"u\"]");
        for (kind, order, has_ticks) in [(9, 1, true), (9, 2, false), (10, 1, false), (1, 1, false)] {
            let mut body = BODY.to_vec();
            (body[29], body[31]) = (kind, order);
            let mut reader = open(&header, &body).unwrap();
            assert_eq!(reader.has_ticks().unwrap(), has_ticks, "kind {kind}, order {order}");
            let mut events = Vec::new();
            assert_eq!(reader.read_block(&mut events).unwrap(), 2);
            assert_eq!((events[1].ts_ns, events[1].order), (1005, order));
            assert!(!reader.has_ticks().unwrap(), "nothing is left");
        }
    }

    #[test]
    fn headers_that_lie_are_refused() {
        for (from, to, word) in [
            ("\"n\":2", "\"n\":3", "ends here"),
            ("\"n\":2", "\"n\":18446744073709551615", "ends here"),
            ("\"mt\"", "\"zz\"", "unknown name"),
            ("\"mt\"", "\"cpu\"", "twice"),
            ("\"kind\"", "\"pid\"", "no column"),
            ("delta", "gamma", "unknown encoding"),
            ("\"raw\",8", "\"raw\",3", "3 bytes"),
            ("PCPT1", "PCPT2", "unknown magic"),
            ("\"cols\"", "\"rows\"", "columns is wrong"),
        ] {
            let error = open(&HEADER.replacen(from, to, 1), BODY).err().expect(to).to_string();
            assert!(error.contains(word) && error.starts_with("t.pcpt"), "{error}");
        }
        assert!(open(HEADER, &BODY[1..]).is_err());
    }

    #[test]
    fn an_unknown_kind_is_named_with_its_offset() {
        let mut body = BODY.to_vec();
        body[29] = 21;
        let mut reader = open(HEADER, &body).unwrap();
        let error = reader.read_block(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains(&format!("byte {}", HEADER.len() + 1 + 29)), "{error}");
        assert!(error.contains("kind = 21"), "{error}");
        assert_eq!(reader.read_block(&mut Vec::new()).unwrap(), 0);
    }
}
