//! Splits a stream into lines, in bounded memory. There is one buffer, and a line longer than a limit is
//! skipped.

use std::io::{self, Cursor, ErrorKind, Read as _};

use crate::packing::ByteStream;

/// Largest number of bytes in a line. The longest lines of page events have about 300 bytes.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;
const BUFFER_BYTES: usize = 256 << 10;
/// Number of bytes that one read asks for. A text without a layout may be refused after its headings, so no
/// more is read than needed.
const READ_BYTES: usize = 64 << 10;

/// Splits a stream into lines.
pub(super) struct TextLines {
    stream: Box<dyn ByteStream>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of the last line returned, counted from 1.
    number: u64,
    /// Start of the last line returned, in the buffer.
    line_start: usize,
    is_at_end: bool,
}

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'buffer> {
    /// A whole line.
    Whole(&'buffer [u8]),
    /// The last line of the text. This line has no line end, so the file may be cut off.
    Unfinished(&'buffer [u8]),
    /// A line longer than the limit.
    TooLong,
}

impl TextLines {
    pub(super) fn new(stream: Box<dyn ByteStream>) -> Self {
        Self {
            stream,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            number: 0,
            line_start: 0,
            is_at_end: false,
        }
    }

    /// Returns the number of the last line, counted from 1, and the rest of the stream.
    pub(super) fn into_rest(mut self) -> (u64, Box<dyn ByteStream>) {
        self.buffer.truncate(self.end);
        self.buffer.drain(..self.start);
        let rest = Cursor::new(self.buffer);
        (self.number, if self.is_at_end { Box::new(rest) } else { Box::new(rest.chain(self.stream)) })
    }

    /// Makes the next call of `next` return the last line once more.
    pub(super) const fn unread(&mut self) {
        if self.number > 0 {
            self.start = self.line_start;
            self.number -= 1;
        }
    }

    /// The next line, or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                let end = self.start + searched + at;
                self.line_start = self.start;
                self.start = end + 1;
                self.number += 1;
                if end - self.line_start > LINE_BYTES_MAX {
                    return Ok(Some(Line::TooLong));
                }
                return Ok(Some(Line::Whole(&self.buffer[self.line_start..end])));
            }
            searched = self.end - self.start;
            if searched > LINE_BYTES_MAX {
                return self.pass_over().map(|()| Some(Line::TooLong));
            }
            if self.is_at_end {
                if searched == 0 {
                    return Ok(None);
                }
                self.line_start = self.start;
                self.start = self.end;
                self.number += 1;
                return Ok(Some(Line::Unfinished(&self.buffer[self.line_start..self.end])));
            }
            self.fill()?;
        }
    }

    /// Moves the remaining bytes to the front of the buffer and reads more bytes.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        self.line_start = 0;
        loop {
            let read_end = self.buffer.len().min(self.end + READ_BYTES);
            match self.stream.read(&mut self.buffer[self.end..read_end]) {
                Ok(0) => self.is_at_end = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    /// Drops bytes up to and including the next line end.
    fn pass_over(&mut self) -> io::Result<()> {
        self.number += 1;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += at + 1;
                self.line_start = self.start;
                return Ok(());
            }
            self.start = self.end;
            if self.is_at_end {
                self.line_start = self.start;
                return Ok(());
            }
            self.fill()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use super::*;

    /// Returns one byte per read, so that a test meets every possible boundary between two reads.
    struct Drip(Cursor<Vec<u8>>);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    #[test]
    fn lines_are_split_at_any_border() {
        let mut lines = TextLines::new(Box::new(Drip(Cursor::new(b"a\n\nbc\nd".to_vec()))));
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"a")));
        lines.unread();
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"a")));
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"")));
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"bc")));
        assert_eq!(lines.number, 3);
        assert_eq!(lines.next().unwrap(), Some(Line::Unfinished(b"d")));
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn long_lines_are_passed_over_in_bounded_memory() {
        for length in [LINE_BYTES_MAX, LINE_BYTES_MAX + 1, BUFFER_BYTES, 3 * BUFFER_BYTES + 7] {
            let mut bytes = vec![b'x'; length];
            bytes.extend(b"\nnext\n");
            let mut lines = TextLines::new(Box::new(Cursor::new(bytes)));
            let is_long = length > LINE_BYTES_MAX;
            assert_eq!(lines.next().unwrap() == Some(Line::TooLong), is_long, "{length}");
            assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"next")), "{length}");
            assert_eq!(lines.number, 2);
            assert_eq!(lines.buffer.len(), BUFFER_BYTES);
        }
        let mut lines = TextLines::new(Box::new(Cursor::new(vec![b'x'; 2 * BUFFER_BYTES])));
        assert_eq!(lines.next().unwrap(), Some(Line::TooLong));
        assert_eq!(lines.next().unwrap(), None);
    }
}
