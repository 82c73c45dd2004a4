//! Reads the bytes of plain or compressed files. If a format needs seeking, a compressed file is first
//! decompressed to a temporary file.

use std::{
    fs::File,
    io::{self, Cursor, Read, Seek, SeekFrom, Write},
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use crate::amount::{Amount, CountingSource};
use crate::damage::{Strictness, UpToTheCut, is_damage};
use crate::error::TraceError;
use crate::packing::{self, ByteStream, Packing};

/// Number of bytes that are examined to find a file's format.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// A source of bytes with random access.
pub(crate) trait Seekable: Read + Seek + Send {}
impl<T: Read + Seek + Send> Seekable for T {}

/// A trace's decompressed bytes. The head was examined; the caller still reads all bytes, including the head.
pub(crate) struct Input {
    /// Up to [`HEAD_BYTES`] bytes from the start.
    pub(crate) head: Vec<u8>,
    body: Body,
    /// Counts the bytes of the file that were read. If the file is a pipe, its length is not known.
    amount: Amount,
    /// A flag that becomes true when damage is met and skipped. `None` if the reader returns an error at
    /// damage.
    is_cut: Option<Arc<AtomicBool>>,
}

enum Body {
    /// The bytes of a file that is not compressed.
    Plain(Box<dyn Seekable>),
    /// The decompressed bytes after the head of a compressed file.
    Packed(Box<dyn ByteStream>),
}

impl Input {
    /// Opens the file at `path`. Damage in compressed data is an error.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        Self::open_with(path, Strictness::Strict)
    }

    /// Opens the file at `path`.
    pub(crate) fn open_with(path: &Path, strictness: Strictness) -> Result<Self, TraceError> {
        let file = File::open(path).map_err(|error| TraceError::io(path, "open", error))?;
        let kind = file.metadata().map_err(|error| TraceError::io(path, "inspect", error))?;
        if kind.is_dir() {
            return Err(TraceError::file(path, "is a directory", "name a file"));
        }
        if !kind.is_file() {
            // A pipe cannot be read twice, so treat a pipe like the output of a decompressor.
            return Self::from_stream(path, (Box::new(file), Amount::events(None)), strictness);
        }
        Self::from_seekable(path, Box::new(file), strictness)
    }

    /// Opens bytes in memory. `path` is only for messages.
    pub(crate) fn from_bytes(
        path: &Path,
        bytes: Vec<u8>,
        strictness: Strictness,
    ) -> Result<Self, TraceError> {
        Self::from_seekable(path, Box::new(Cursor::new(bytes)), strictness)
    }

    fn from_seekable(
        path: &Path,
        mut source: Box<dyn Seekable>,
        strictness: Strictness,
    ) -> Result<Self, TraceError> {
        let mut magic = Vec::new();
        let bytes = source
            .by_ref()
            .take(packing::MAGIC_BYTES as u64)
            .read_to_end(&mut magic)
            .and_then(|_| source.seek(SeekFrom::End(0)))
            .and_then(|bytes| source.rewind().map(|()| bytes))
            .map_err(|error| TraceError::io(path, "read", error))?;
        let amount = Amount::bytes(bytes);
        if Packing::of(&magic).is_some() {
            let file = CountingSource { source, amount: amount.clone() };
            return Self::from_stream(path, (Box::new(file), amount), strictness);
        }
        let head = read_head(path, &mut source)?;
        source.rewind().map_err(|error| TraceError::io(path, "rewind", error))?;
        let file = Box::new(CountingSource { source, amount: amount.clone() });
        Ok(Self { head, body: Body::Plain(file), amount, is_cut: None })
    }

    fn from_stream(
        path: &Path,
        (mut stream, amount): (Box<dyn ByteStream>, Amount),
        strictness: Strictness,
    ) -> Result<Self, TraceError> {
        let mut head = read_head(path, &mut stream)?;
        let mut is_cut = None;
        if let Some(packing) = Packing::of(&head) {
            stream = packing.unpack(path, Cursor::new(head).chain(stream))?;
            if strictness == Strictness::Lenient {
                let flag = is_cut.insert(Arc::default());
                stream = Box::new(UpToTheCut::new(stream, Arc::clone(flag)));
            }
            head = read_head(path, &mut stream)?;
        }
        Ok(Self { head, body: Body::Packed(stream), amount, is_cut })
    }

    /// A flag that shows whether damage was met so far. `None` if the reader returns an error at damage.
    pub(crate) fn is_cut(&self) -> Option<Arc<AtomicBool>> {
        self.is_cut.clone()
    }

    /// The number of bytes in the file, and the number of bytes that were read so far.
    pub(crate) fn amount(&self) -> Amount {
        self.amount.clone()
    }

    /// All bytes, in order.
    pub(crate) fn into_stream(self) -> Box<dyn ByteStream> {
        match self.body {
            Body::Plain(file) => Box::new(file),
            Body::Packed(rest) => Box::new(Cursor::new(self.head).chain(rest)),
        }
    }

    /// Returns all bytes of the source, with random access. Compressed bytes are written to an unlinked
    /// temporary file of at most `bytes_max` bytes.
    pub(crate) fn into_seekable(self, path: &Path, bytes_max: u64) -> Result<Box<dyn Seekable>, TraceError> {
        let rest = match self.body {
            Body::Plain(file) => return Ok(file),
            Body::Packed(rest) => rest,
        };
        let temporary = std::env::temp_dir();
        let mut spool =
            tempfile::tempfile().map_err(|error| TraceError::io(&temporary, "create a file in", error))?;
        let mut source = Cursor::new(self.head).chain(rest).take(bytes_max.saturating_add(1));
        let copied = copy(path, &temporary, &mut source, &mut spool)?;
        if copied > bytes_max {
            return Err(TraceError::file(
                path,
                format!("unpacks to more than {bytes_max} bytes"),
                "unpack it by hand and open the result, or raise the limit of the spool",
            ));
        }
        spool.seek(SeekFrom::Start(0)).map_err(|error| TraceError::io(&temporary, "rewind", error))?;
        Ok(Box::new(spool))
    }
}

/// Maximum bytes of a text that a person writes: a machine to simulate, a plan, parameters. Texts that a
/// person writes have some kilobytes.
pub const DESCRIPTION_BYTES_MAX: u64 = 1 << 20;

/// Reads the text of a description, and decompresses it if needed. The text may be no larger than
/// [`DESCRIPTION_BYTES_MAX`], even if the file is a device or a sparse file.
///
/// # Errors
/// An error if the file cannot be read, is larger than [`DESCRIPTION_BYTES_MAX`], or is not UTF-8.
pub fn read_description(path: &Path) -> Result<String, TraceError> {
    read_text(path, DESCRIPTION_BYTES_MAX)
}

/// Reads a whole text file of at most `bytes_max` bytes, and decompresses it if needed.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> Result<String, TraceError> {
    let mut bytes = Vec::new();
    Input::open(path)?
        .into_stream()
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable_or(path, error, ""))?;
    if bytes.len() as u64 > bytes_max {
        return Err(TraceError::file(
            path,
            format!("is larger than {} MiB, the most that a description may have", bytes_max >> 20),
            "name a description, not a trace",
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        TraceError::offset(
            path,
            error.utf8_error().valid_up_to() as u64,
            "is not UTF-8 text",
            "name a text file",
        )
    })
}

/// Makes the error for a failed read. Damaged compressed data has another remedy than an error of the system.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> TraceError {
    unreadable_or(path, error, ", or read leniently up to the damage")
}

/// Makes the error for a failed read, with `or` as a further remedy for damage.
fn unreadable_or(path: &Path, error: io::Error, or: &str) -> TraceError {
    if !is_damage(&error) {
        return TraceError::io(path, "read", error);
    }
    TraceError::file(
        path,
        format!("the packed data is damaged, truncated or needs too much memory ({error})"),
        format!("check it with `xz -t`, `gzip -t` or `zstd -t`, copy it again{or}"),
    )
}

fn read_head(path: &Path, source: &mut dyn Read) -> Result<Vec<u8>, TraceError> {
    let mut head = Vec::new();
    source.take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(|error| unreadable(path, error))?;
    Ok(head)
}

/// Does the same as `io::copy`. The error also shows whether reading or writing failed.
fn copy(
    from_path: &Path,
    to_path: &Path,
    from: &mut dyn Read,
    to: &mut dyn Write,
) -> Result<u64, TraceError> {
    let mut buffer = vec![0; 256 << 10];
    let mut copied = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(from_path, error)),
        };
        to.write_all(&buffer[..count])
            .map_err(|error| TraceError::io(to_path, "write the spool file in", error))?;
        copied += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut stream: Box<dyn ByteStream>) -> Vec<u8> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn bytes_can_be_read_in_order_and_from_anywhere() {
        let path = Path::new("x");
        let long: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        for bytes in [b"".as_slice(), b"abc", &long] {
            let input = Input::from_bytes(path, bytes.to_vec(), Strictness::Strict).unwrap();
            assert_eq!(input.head, bytes[..bytes.len().min(HEAD_BYTES)]);
            assert_eq!(all(input.into_stream()), bytes);
            let mut file = Input::from_bytes(path, bytes.to_vec(), Strictness::Strict)
                .unwrap()
                .into_seekable(path, 1 << 20)
                .unwrap();
            let mut back = Vec::new();
            file.read_to_end(&mut back).unwrap();
            assert_eq!(back, bytes);
        }
    }
}
