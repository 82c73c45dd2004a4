//! Reads numbers, names and texts of a binary file in order.

use std::{
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
};

use crate::error::TraceError;

/// Maximum bytes of a text. An event's description has a few thousand bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Maximum bytes of a name, including its final zero byte.
const NAME_BYTES_MAX: u64 = 256;
const REMEDY: &str = "copy the file again, or record again";

/// Reads a file, or a decompressed part of it. Numbers are in this machine's byte order.
pub(super) struct Bytes<R> {
    path: PathBuf,
    /// The current offset in the file. While decompressed data is read, this is the offset of the compressed
    /// part.
    offset: u64,
    is_packed: bool,
    source: R,
}

impl<R: BufRead> Bytes<R> {
    /// Reads `source`, which begins at `offset` of the file.
    pub(super) fn new(path: &Path, offset: u64, source: R) -> Self {
        Self { path: path.to_owned(), offset, is_packed: false, source }
    }

    /// Reads decompressed data. The compressed part begins at `offset` of the file.
    pub(super) fn unpacked(path: &Path, offset: u64, source: R) -> Self {
        Self { is_packed: true, ..Self::new(path, offset, source) }
    }

    /// The source, from the current position on.
    pub(super) fn into_source(self) -> R {
        self.source
    }

    /// Makes an error at the current position.
    pub(super) fn error(&self, problem: impl Into<String>) -> TraceError {
        self.error_with(problem, REMEDY)
    }

    /// Makes an error at the current position, with `remedy` in place of the usual remedy.
    pub(super) fn error_with(&self, problem: impl Into<String>, remedy: &str) -> TraceError {
        TraceError::offset(&self.path, self.offset, problem, remedy)
    }

    fn failed(&self, error: io::Error) -> TraceError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.error("the file ends too early"),
            _ if error.raw_os_error().is_none() => {
                self.error(format!("the packed data is damaged ({error})"))
            }
            _ => TraceError::io(&self.path, "read", error),
        }
    }

    fn passed(&mut self, bytes: u64) {
        if !self.is_packed {
            self.offset = self.offset.saturating_add(bytes);
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], TraceError> {
        let mut array = [0; N];
        self.source.read_exact(&mut array).map_err(|error| self.failed(error))?;
        self.passed(N as u64);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, TraceError> {
        self.array().map(u8::from_ne_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, TraceError> {
        self.array().map(u16::from_ne_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, TraceError> {
        self.array().map(u32::from_ne_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, TraceError> {
        self.array().map(u64::from_ne_bytes)
    }

    /// A name that ends with a zero byte.
    pub(super) fn name(&mut self) -> Result<String, TraceError> {
        let mut name = Vec::new();
        let read = (&mut self.source).take(NAME_BYTES_MAX).read_until(0, &mut name);
        read.map_err(|error| self.failed(error))?;
        if name.pop() != Some(0) {
            return Err(self.error("a name has no end"));
        }
        self.passed(name.len() as u64 + 1);
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// Reads bytes that must equal `expected`.
    pub(super) fn expect(&mut self, expected: &[u8]) -> Result<(), TraceError> {
        let is_there = self.text(expected.len() as u64)?.as_bytes() == expected;
        if is_there {
            Ok(())
        } else {
            Err(self.error(format!("there is no \"{}\"", expected.escape_ascii())))
        }
    }

    /// Reads a text of `bytes` bytes.
    pub(super) fn text(&mut self, bytes: u64) -> Result<String, TraceError> {
        self.blob(bytes).map(|text| String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads the next `bytes` bytes into memory, so `bytes` must be small.
    pub(super) fn blob(&mut self, bytes: u64) -> Result<Vec<u8>, TraceError> {
        if bytes > TEXT_BYTES_MAX {
            return Err(self.error(format!("a text claims to have {bytes} bytes")));
        }
        let mut blob = Vec::new();
        self.part(bytes, |part| part.read_to_end(&mut blob).map(drop))?;
        Ok(blob)
    }

    /// Skips `bytes` bytes.
    pub(super) fn skip(&mut self, bytes: u64) -> Result<(), TraceError> {
        self.part(bytes, |_| Ok(()))
    }

    /// Lets `read` read the next `bytes` bytes, and skips the bytes that `read` does not read.
    pub(super) fn part<T>(
        &mut self,
        bytes: u64,
        read: impl FnOnce(&mut io::Take<&mut R>) -> io::Result<T>,
    ) -> Result<T, TraceError> {
        let mut part = (&mut self.source).take(bytes);
        let done = read(&mut part).and_then(|done| {
            io::copy(&mut part, &mut io::sink())?;
            if part.limit() > 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(done) }
        });
        let done = done.map_err(|error| self.failed(error))?;
        self.passed(bytes);
        Ok(done)
    }
}

/// Quotes a name from a file for an error message. A long name is shortened, because a damaged file may have
/// a very long name.
pub(super) fn quoted(name: &str) -> String {
    let name: String = name.chars().take(40).collect();
    format!("{name:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: &[u8]) -> Bytes<&[u8]> {
        Bytes::new(Path::new("t.dat"), 5, bytes)
    }

    #[test]
    fn what_is_read_is_what_is_there() {
        let mut bytes = bytes(b"\x01ab\0textskipped\x02");
        assert_eq!(bytes.u8().unwrap(), 1);
        assert_eq!(bytes.name().unwrap(), "ab");
        assert_eq!(bytes.text(4).unwrap(), "text");
        bytes.skip(7).unwrap();
        assert_eq!(bytes.u8().unwrap(), 2);
        assert_eq!(bytes.offset, 5 + 16);
    }

    #[test]
    fn what_is_not_there_is_an_error_with_its_place() {
        for error in [
            bytes(b"abc").u32().map(drop).unwrap_err(),
            bytes(b"abc").name().map(drop).unwrap_err(),
            bytes(b"abc").expect(b"abd").unwrap_err(),
            bytes(b"abc").skip(u64::MAX).unwrap_err(),
            bytes(b"abc").text(4).map(drop).unwrap_err(),
            bytes(b"abc").text(u64::MAX).map(drop).unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(error.starts_with("t.dat: byte ") && error.ends_with(REMEDY), "{error}");
        }
    }
}
