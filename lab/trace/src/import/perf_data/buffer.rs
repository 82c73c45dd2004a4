//! Reads the records of a file one by one. A record is lent from a buffer, so that it is not copied.

use std::{
    io::{ErrorKind, Read},
    path::PathBuf,
};

use super::HEADING_BYTES;
use crate::{amount::Amount, error::TraceError};

/// Number of bytes of the buffer. The longest record has 64 KiB.
const BUFFER_BYTES: usize = 256 << 10;
const REMEDY: &str = "copy the file again, or record again";

/// A file, from its first record on.
pub(super) struct RecordBuffer<R> {
    path: PathBuf,
    file: R,
    buffer: Vec<u8>,
    /// The bytes of the buffer that were read from the file, and not yet returned.
    start: usize,
    end: usize,
    /// Offset of the next record in the file, in bytes.
    offset: u64,
    /// Number of bytes up to the end of the records.
    left: u64,
    /// Counts the bytes that were read into the buffer.
    amount: Amount,
}

/// The kind of a record, and its bytes behind the heading.
pub(super) struct Record<'buffer> {
    pub(super) kind: u32,
    pub(super) body: &'buffer [u8],
}

impl<R: Read> RecordBuffer<R> {
    /// Reads records from `file`, whose position is `offset`. The records have `bytes` bytes.
    pub(super) fn new(path: PathBuf, file: R, offset: u64, bytes: u64) -> Self {
        let amount = Amount::bytes(bytes);
        Self { path, file, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, offset, left: bytes, amount }
    }

    pub(super) fn amount(&self) -> Amount {
        self.amount.clone()
    }

    /// The offset in bytes behind the last record that was returned.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        if self.left == 0 {
            return Ok(None);
        }
        let (kind, bytes) = self.heading()?;
        if !self.is_possible(bytes) {
            return Err(self.error("a record has an impossible length"));
        }
        self.take(kind, bytes).map(Some)
    }

    /// Does the same as [`next`](Self::next) in a file that may be cut. Returns `None` if the rest of the
    /// file does not begin with a whole record.
    pub(super) fn next_whole(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        if self.left < u64::from(HEADING_BYTES) {
            return Ok(None);
        }
        match self.heading()? {
            (kind, bytes) if self.is_possible(bytes) => self.take(kind, bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// The kind of the next record, and its length in bytes with the heading.
    #[inline]
    fn heading(&mut self) -> Result<(u32, u16), TraceError> {
        self.fill(HEADING_BYTES.into())?;
        let heading = &self.buffer[self.start..];
        let [k0, k1, k2, k3, _, _, b0, b1, ..] = *heading else { return Err(self.ends_too_early()) };
        Ok((u32::from_ne_bytes([k0, k1, k2, k3]), u16::from_ne_bytes([b0, b1])))
    }

    #[inline]
    fn is_possible(&self, bytes: u16) -> bool {
        bytes >= HEADING_BYTES && u64::from(bytes) <= self.left
    }

    #[inline]
    fn take(&mut self, kind: u32, bytes: u16) -> Result<Record<'_>, TraceError> {
        self.fill(bytes.into())?;
        let start = self.start;
        self.start += usize::from(bytes);
        self.offset += u64::from(bytes);
        self.left -= u64::from(bytes);
        let body = &self.buffer[start + usize::from(HEADING_BYTES)..self.start];
        Ok(Record { kind, body })
    }

    /// Reads until the buffer has at least `bytes` bytes that were not returned yet.
    #[inline]
    fn fill(&mut self, bytes: usize) -> Result<(), TraceError> {
        if self.end - self.start >= bytes { Ok(()) } else { self.read(bytes) }
    }

    #[cold]
    fn read(&mut self, bytes: usize) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < bytes {
            match self.file.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(self.ends_too_early()),
                Ok(count) => {
                    self.end += count;
                    self.amount.add(count as u64);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(TraceError::io(&self.path, "read", error)),
            }
        }
        Ok(())
    }

    fn ends_too_early(&self) -> TraceError {
        self.error("the file ends too early")
    }

    /// Makes an error at the next record.
    pub(super) fn error(&self, problem: impl Into<String>) -> TraceError {
        self.error_with(problem, REMEDY)
    }

    /// Makes an error at the next record, with `remedy` in place of the usual remedy.
    pub(super) fn error_with(&self, problem: impl Into<String>, remedy: &str) -> TraceError {
        TraceError::offset(&self.path, self.offset, problem, remedy)
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// The bytes of a record of kind 9 whose body has `bytes` bytes of this value.
    fn record(value: u8, bytes: u16) -> Vec<u8> {
        let length = (bytes + HEADING_BYTES).to_le_bytes();
        let mut record = vec![9, 0, 0, 0, 0, 0, length[0], length[1]];
        record.resize(usize::from(bytes + HEADING_BYTES), value);
        record
    }

    fn buffer(file: Vec<u8>, bytes: u64) -> RecordBuffer<Cursor<Vec<u8>>> {
        RecordBuffer::new("p.data".into(), Cursor::new(file), 100, bytes)
    }

    #[test]
    fn records_are_whole_wherever_the_buffer_ends() {
        let lengths = || (0..60).map(|number: u16| (number as u8, number * 1_009));
        let file: Vec<u8> = lengths().flat_map(|(value, bytes)| record(value, bytes)).collect();
        assert!(file.len() > 4 * BUFFER_BYTES);
        let all = file.len() as u64;
        let mut records = buffer(file, all);
        for (value, bytes) in lengths() {
            let record = records.next().unwrap().unwrap();
            assert!(record.kind == 9 && record.body == vec![value; usize::from(bytes)], "{value}");
        }
        assert!(records.next().unwrap().is_none());
    }

    #[test]
    fn impossible_lengths_are_errors_with_their_place() {
        let two = [record(1, 10), record(2, 10)].concat();
        for (file, bytes, problem) in [
            (two.clone(), 35, "byte 118: a record has an impossible length"),
            (two[..30].to_vec(), 36, "byte 118: the file ends too early"),
            (two[..20].to_vec(), 36, "byte 118: the file ends too early"),
            ([record(1, 10), vec![9, 0, 0, 0, 0, 0, 7, 0]].concat(), 26, "byte 118: a record has"),
        ] {
            let mut records = buffer(file, bytes);
            assert!(records.next().unwrap().is_some());
            let error = records.next().map(drop).unwrap_err().to_string();
            assert!(error.starts_with("p.data: ") && error.contains(problem), "{error}");
        }
    }
}
