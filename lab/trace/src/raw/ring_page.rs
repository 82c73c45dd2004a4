//! Reads the records of a page of a CPU's ring, as `trace_pipe_raw` delivers the page.
//!
//! Source: `events/header_page` gives the places of time, length and data. `events/header_event` gives the
//! form of a record's header. The meaning of the length's two highest bits, and the encoding of long records,
//! were observed on Linux 6.18.

use super::event_format::{self, Field};

/// Bit of a page's length field: events are missing before this page.
const MISSED: u64 = 1 << 31;
/// Bit of a page's length field: the number of missing events follows the data.
const MISSED_COUNTED: u64 = 1 << 30;

/// Kind of a record whose first word is its length. In records of kinds 1 to 28, the kind is the length in
/// words.
const LONG: u32 = 0;
/// Kind of a padding record. The padding extends to the end of the page, or has the length in the record's
/// first word.
const PADDING: u32 = 29;
/// Kind of a record with the high bits of a large time difference from the previous record.
const TIME_EXTEND: u32 = 30;
/// Kind of a record with an absolute time.
const TIME_STAMP: u32 = 31;
/// Number of time bits in a record's header.
const DELTA_BITS: u32 = 27;
/// Number of time bits in a header and the word after it.
const STAMP_BITS: u32 = 59;

/// Where the time, the length and the data lie in a page of the kernel's ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    timestamp: Field,
    length: Field,
    data: usize,
    /// Bytes of a page.
    pub page_bytes: usize,
}

impl PageLayout {
    /// Parses `events/header_page` and `events/header_event`.
    ///
    /// # Errors
    /// A sentence about the unknown form.
    pub fn parse(header_page: &str, header_event: &str) -> Result<Self, String> {
        let fields = event_format::fields(header_page)?;
        let field = |name: &str| {
            let found = fields.iter().find(|(known, _)| known == name);
            found.map(|(_, field)| *field).ok_or_else(|| format!("there is no field {name:?}"))
        };
        let (timestamp, length, data) = (field("timestamp")?, field("commit")?, field("data")?);
        let page_bytes = data.offset.saturating_add(data.size);
        if timestamp.size != 8 || ![4, 8].contains(&length.size) || page_bytes > 1 << 20 {
            return Err("the fields of a page have unknown sizes".to_owned());
        }
        let header: String = header_event.split_whitespace().collect();
        for part in
            ["type_len:5bits", "time_delta:27bits", "array:32bits", "type==29", "type==30", "type==31"]
        {
            if !header.contains(part) {
                return Err(format!("the header of a record has no `{part}`"));
            }
        }
        Ok(Self { timestamp, length, data: data.offset, page_bytes })
    }
}

/// Events that the kernel lost before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The number of lost events. `None` if the kernel does not give this number.
    pub events: Option<u64>,
}

/// A record with its time. The time is in nanoseconds of the tracing instance's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'page> {
    /// Time of the record.
    pub ts_ns: u64,
    /// The record's fields.
    pub bytes: &'page [u8],
}

/// The records of a page, in order.
#[derive(Clone, Debug)]
pub struct Records<'page> {
    rest: &'page [u8],
    ts_ns: u64,
    /// Events lost before the first record.
    pub missed: Option<Missed>,
}

/// A page that contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl<'page> Records<'page> {
    /// Reads the page in `bytes`.
    ///
    /// # Errors
    /// An error if the page is shorter than its header or than its length field says.
    pub fn of(layout: &PageLayout, bytes: &'page [u8]) -> Result<Self, Damaged> {
        let ts_ns = layout.timestamp.read(bytes).ok_or(Damaged)?;
        let length = layout.length.read(bytes).ok_or(Damaged)?;
        let data_bytes = (length & (MISSED_COUNTED - 1)) as usize;
        let data = bytes.get(layout.data..).ok_or(Damaged)?;
        let (rest, behind) = data.split_at_checked(data_bytes).ok_or(Damaged)?;
        let events = behind.first_chunk().filter(|_| length & MISSED_COUNTED != 0);
        let missed = Missed { events: events.map(|count| u64::from_ne_bytes(*count)) };
        Ok(Self { rest, ts_ns, missed: (length & MISSED != 0).then_some(missed) })
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_ne_bytes(*word))
    }

    fn take(&mut self, bytes: usize) -> Option<&'page [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    /// Returns the next record. The outer `None` means that the page contradicts itself.
    fn next_record(&mut self) -> Option<Option<Record<'page>>> {
        while !self.rest.is_empty() {
            let header = self.word()?;
            let (kind, delta) = split(header);
            match kind {
                PADDING if delta == 0 => self.rest = &[],
                PADDING => {
                    let length = self.word()?;
                    self.take((length as usize).checked_sub(4)?)?;
                    self.ts_ns = self.ts_ns.wrapping_add(delta);
                }
                TIME_EXTEND => {
                    let high = u64::from(self.word()?) << DELTA_BITS;
                    self.ts_ns = self.ts_ns.wrapping_add(high + delta);
                }
                TIME_STAMP => {
                    let stamp = u64::from(self.word()?) << DELTA_BITS | delta;
                    self.ts_ns = self.ts_ns >> STAMP_BITS << STAMP_BITS | stamp;
                }
                _ => {
                    let bytes = if kind == LONG {
                        let bytes = (self.word()? as usize).checked_sub(4)?;
                        self.take(bytes.checked_next_multiple_of(4)?)?
                    } else {
                        self.take(kind as usize * 4)?
                    };
                    self.ts_ns = self.ts_ns.wrapping_add(delta);
                    return Some(Some(Record { ts_ns: self.ts_ns, bytes }));
                }
            }
        }
        Some(None)
    }
}

impl<'page> Iterator for Records<'page> {
    type Item = Result<Record<'page>, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_record();
        if next.is_none() {
            self.rest = &[];
        }
        next.ok_or(Damaged).transpose()
    }
}

/// Splits a record's header into the kind and the time difference. The kind and the time difference are C bit
/// fields. The kind is the first field, so it has the lowest bits on little-endian machines, and the highest
/// bits on big-endian machines.
const fn split(header: u32) -> (u32, u64) {
    if cfg!(target_endian = "big") {
        (header >> DELTA_BITS, (header & ((1 << DELTA_BITS) - 1)) as u64)
    } else {
        (header & 0x1f, (header >> 5) as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER_PAGE: &str = include_str!("../../tests/kernel/header_page");
    const HEADER_EVENT: &str = include_str!("../../tests/kernel/header_event");

    fn layout() -> PageLayout {
        PageLayout::parse(HEADER_PAGE, HEADER_EVENT).unwrap()
    }

    /// Makes a page of a ring. The data of the page is `words`.
    fn page(ts_ns: u64, flags: u64, words: &[u32], behind: &[u8]) -> Vec<u8> {
        let mut bytes = ts_ns.to_ne_bytes().to_vec();
        bytes.extend((flags | (words.len() as u64 * 4)).to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(behind);
        bytes
    }

    fn header(kind: u32, delta: u32) -> u32 {
        if cfg!(target_endian = "big") { kind << 27 | delta } else { delta << 5 | kind }
    }

    fn times(bytes: &[u8]) -> Vec<Result<(u64, usize), Damaged>> {
        let records = Records::of(&layout(), bytes).unwrap();
        records.map(|record| record.map(|record| (record.ts_ns, record.bytes.len()))).collect()
    }

    #[test]
    fn times_add_up_over_every_kind_of_record() {
        let words = [
            header(1, 5),
            0xaaaa,
            header(TIME_EXTEND, 3),
            1,
            header(2, 7),
            1,
            2,
            header(PADDING, 1),
            8,
            0,
            header(LONG, 2),
            10,
            7,
            7,
            header(TIME_STAMP, 9),
            4,
            header(1, 1),
            0,
            header(PADDING, 0),
            99,
        ];
        let extended = 105 + 3 + (1 << 27);
        assert_eq!(
            times(&page(100, 0, &words, &[])),
            [Ok((105, 4)), Ok((extended + 7, 8)), Ok((extended + 10, 8)), Ok(((4 << 27) + 10, 4))]
        );
    }

    #[test]
    fn what_is_missing_is_counted_where_the_kernel_counts() {
        let missed = |flags, behind: &[u8]| {
            Records::of(&layout(), &page(1, flags, &[header(1, 0), 0], behind)).unwrap().missed
        };
        assert_eq!(missed(0, &[]), None);
        assert_eq!(missed(MISSED, &[]), Some(Missed { events: None }));
        let sign = u64::MAX << 32;
        let counted = missed(sign | MISSED | MISSED_COUNTED, &7_u64.to_ne_bytes());
        assert_eq!(counted, Some(Missed { events: Some(7) }));
        assert_eq!(missed(MISSED | MISSED_COUNTED, &[1, 2]), Some(Missed { events: None }));
    }

    #[test]
    fn a_page_of_the_kernel_has_its_records() {
        let bytes = include_bytes!("../../tests/kernel/ring_page.bin");
        let records: Vec<_> = Records::of(&layout(), bytes).unwrap().collect::<Result<_, _>>().unwrap();
        assert!(records.is_sorted_by_key(|record| record.ts_ns));
        let text = records.iter().find(|record| record.bytes.windows(300).any(|part| part == [b'y'; 300]));
        assert!(text.is_some(), "a record longer than 28 words");
        assert!(records.len() > 20);
    }

    #[test]
    fn damage_ends_a_page() {
        assert!(Records::of(&layout(), &[0; 15]).is_err());
        assert!(
            Records::of(&layout(), &page(1, 4, &[], &[])).is_err(),
            "expected an error for a page that is shorter than its length field says"
        );
        assert_eq!(times(&page(1, 0, &[header(5, 0), 0], &[])), [Err(Damaged)]);
        assert_eq!(times(&page(1, 0, &[header(LONG, 0), 3], &[])), [Err(Damaged)]);
        assert_eq!(times(&page(1, 0, &[header(LONG, 0), u32::MAX], &[])), [Err(Damaged)]);
        assert_eq!(
            times(&page(1, 0, &[header(1, 2), 0, header(TIME_EXTEND, 0)], &[])),
            [Ok((3, 4)), Err(Damaged)]
        );
    }

    #[test]
    fn an_unknown_layout_is_refused() {
        let parse = |from: &str, to: &str| {
            PageLayout::parse(&HEADER_PAGE.replace(from, to), &HEADER_EVENT.replace(from, to)).unwrap_err()
        };
        assert!(parse("commit", "comit").contains("commit"));
        assert!(parse("27 bits", "20 bits").contains("time_delta"));
        assert!(parse("size:4080", "size:99999999").contains("sizes"));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..4200)) {
            if let Ok(records) = Records::of(&layout(), &bytes) {
                prop_assert!(records.count() <= bytes.len());
            }
        }

        #[test]
        fn any_words_end(words in prop::collection::vec(any::<u32>(), 0..1020), flags in any::<u32>()) {
            let bytes = page(u64::MAX, u64::from(flags) << 30, &words, &[]);
            if let Ok(records) = Records::of(&layout(), &bytes) {
                prop_assert!(records.count() <= words.len() + 1);
            }
        }
    }
}
