//! Writes a native file from front to back. One block of events is in memory, or a few blocks for each
//! further thread.

use std::io::{self, Write};
use std::mem;

use super::{
    description,
    encoders::{Encoded, Encoders, Wait},
    format::{BLOCKS_MAX, FileHeader, Footer, VERSION_MAJOR, VERSION_MINOR, VERSION_MINOR_CLOSING},
    index::Index,
};
use crate::{event::Event, info::LostEvents, info::TraceInfo, reader::BLOCK_EVENTS_MAX};

/// Options for writing a native file.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    level: i32,
    encoders: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { level: 9, encoders: 0 }
    }
}

impl WriteOptions {
    /// The default: zstd level 9.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the compression level, from 1 (fast) to 22 (small). The level does not affect the speed of
    /// reading.
    #[must_use]
    pub fn level(mut self, level: i32) -> Self {
        self.level = level.clamp(1, 22);
        self
    }

    /// Encodes and compresses on this number of further threads. Each thread holds up to three blocks of
    /// events in memory. By default there is no further thread, and the caller's thread encodes.
    #[must_use]
    pub fn encoders(mut self, threads: usize) -> Self {
        self.encoders = threads;
        self
    }
}

/// Writes a native file. The file is complete only after [`NativeWriter::finish`].
pub struct NativeWriter<W: Write> {
    out: W,
    offset: u64,
    level: i32,
    encoders: Encoders,
    pending: Vec<Event>,
    index: Index,
}

impl<W: Write> NativeWriter<W> {
    /// Begins a file: writes its header and its description.
    ///
    /// # Errors
    /// An error if `out` cannot be written, or if the description is larger than 64 MiB.
    pub fn new(out: W, info: &TraceInfo, options: WriteOptions) -> io::Result<Self> {
        Self::with_version(out, info, options, VERSION_MINOR)
    }

    /// Begins a file for a recording whose end is still unknown. Writes a description that
    /// [`NativeWriter::finish_with`] will replace. If the file is cut off before the end, readers use this
    /// first description.
    ///
    /// # Errors
    /// The errors of [`NativeWriter::new`].
    pub fn provisional(out: W, info: &TraceInfo, options: WriteOptions) -> io::Result<Self> {
        Self::with_version(out, info, options, VERSION_MINOR_CLOSING)
    }

    fn with_version(
        mut out: W,
        info: &TraceInfo,
        options: WriteOptions,
        version_minor: u16,
    ) -> io::Result<Self> {
        let (description, stored) = description::pack(info, options.level)?;
        let header = FileHeader {
            version_major: VERSION_MAJOR,
            version_minor,
            stored_bytes: description.stored_bytes,
            raw_bytes: description.raw_bytes,
            crc: description.crc,
        }
        .to_bytes();
        out.write_all(&header)?;
        out.write_all(&stored)?;
        Ok(Self {
            out,
            offset: (header.len() + stored.len()) as u64,
            level: options.level,
            encoders: Encoders::new(options.level, options.encoders)?,
            pending: Vec::with_capacity(BLOCK_EVENTS_MAX),
            index: Index::default(),
        })
    }

    /// Adds events. When a block is full, the writer encodes it. Without further threads, the writer writes
    /// the block to `out` at once. With further threads, the writer writes the block when a few more blocks
    /// are full.
    ///
    /// # Errors
    /// An error if `out` cannot be written.
    pub fn write(&mut self, mut events: &[Event]) -> io::Result<()> {
        while !events.is_empty() {
            let room = BLOCK_EVENTS_MAX - self.pending.len();
            let (now, later) = events.split_at(room.min(events.len()));
            self.pending.extend_from_slice(now);
            events = later;
            if self.pending.len() == BLOCK_EVENTS_MAX {
                self.flush_block()?;
            }
        }
        Ok(())
    }

    /// Writes the current block even if it is not full, so that its events survive a crash of this process.
    /// Call this function rarely, such as once a second, because events take more bytes in blocks that are
    /// not full.
    ///
    /// # Errors
    /// An error if `out` cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_all()?;
        self.out.flush()
    }

    fn flush_block(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let events = mem::replace(&mut self.pending, self.encoders.spare());
        self.encoders.give(events)?;
        while let Some(encoded) = self.encoders.take(Wait::UnlessThereIsRoom)? {
            self.write_encoded(encoded)?;
        }
        Ok(())
    }

    fn flush_all(&mut self) -> io::Result<()> {
        self.flush_block()?;
        while let Some(encoded) = self.encoders.take(Wait::ForAll)? {
            self.write_encoded(encoded)?;
        }
        Ok(())
    }

    fn write_encoded(&mut self, encoded: Encoded) -> io::Result<()> {
        if self.index.blocks.len() == BLOCKS_MAX {
            return Err(io::Error::other("a trace of more than 2^36 events does not fit one file"));
        }
        let Encoded { events, header, payload } = encoded;
        self.index.add(self.offset, &header, &events);
        let bytes = header.to_bytes();
        self.out.write_all(&bytes)?;
        self.out.write_all(&payload)?;
        self.offset += (bytes.len() + payload.len()) as u64;
        self.encoders.recycle(events);
        Ok(())
    }

    /// Writes the last block, the index and the footer. Returns `out` and the file's size in bytes.
    ///
    /// # Errors
    /// An error if `out` cannot be written.
    pub fn finish(mut self, lost: LostEvents) -> io::Result<(W, u64)> {
        self.flush_all()?;
        self.close(lost)
    }

    /// Does the same as [`NativeWriter::finish`], and writes a description that replaces the description at
    /// the head.
    ///
    /// # Errors
    /// An error if `out` cannot be written, or if the description is larger than 64 MiB.
    pub fn finish_with(mut self, info: &TraceInfo, lost: LostEvents) -> io::Result<(W, u64)> {
        self.flush_all()?;
        let (header, stored) = description::pack(info, self.level)?;
        let header = header.to_bytes();
        self.out.write_all(&header)?;
        self.out.write_all(&stored)?;
        self.index.closing_bytes = (header.len() + stored.len()) as u32;
        self.offset += u64::from(self.index.closing_bytes);
        self.close(lost)
    }

    fn close(mut self, lost: LostEvents) -> io::Result<(W, u64)> {
        self.index.lost = lost;
        let index = self.index.to_bytes();
        let footer = Footer { index_offset: self.offset, index_bytes: index.len() as u32 }.to_bytes();
        self.out.write_all(&index)?;
        self.out.write_all(&footer)?;
        self.out.flush()?;
        Ok((self.out, self.offset + (index.len() + footer.len()) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;

    /// Writes a file. The events of the file fill three and a half blocks, and one more block is flushed
    /// before it is full.
    fn file(encoders: usize) -> Vec<u8> {
        let options = WriteOptions::new().level(1).encoders(encoders);
        let mut writer = NativeWriter::new(Vec::new(), &TraceInfo::default(), options).unwrap();
        let event = |at: u64| Event {
            pfn: (at * at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40,
            ..Event::new(EventKind::MmPageAlloc, at * (1 + at % 3), (at % 4) as u16)
        };
        let events: Vec<Event> = (0..BLOCK_EVENTS_MAX as u64 * 7 / 2).map(event).collect();
        for some in events.chunks(50_000) {
            writer.write(some).unwrap();
        }
        writer.write(&events[..100]).unwrap();
        writer.flush().unwrap();
        let before = writer.offset;
        assert_eq!(writer.out.len() as u64, before, "expected a flushed block to be written at once");
        writer.write(&events[100..200]).unwrap();
        writer.finish(LostEvents::default()).unwrap().0
    }

    #[test]
    fn further_threads_write_the_same_file() {
        let here = file(0);
        assert!(here.len() > 100_000);
        for threads in [1, 3] {
            assert!(file(threads) == here, "{threads} threads");
        }
    }

    /// Tests that an error of `out` reaches the caller, at the end at the latest, and that the threads end.
    #[test]
    fn errors_of_the_output_are_returned() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let options = WriteOptions::new().level(1).encoders(2);
        let mut writer = NativeWriter::new(Full(2000), &TraceInfo::default(), options).unwrap();
        let event = |at: u64| Event { pfn: at * at, ..Event::new(EventKind::MmPageFree, at, 0) };
        let events: Vec<Event> = (0..2 * BLOCK_EVENTS_MAX as u64).map(event).collect();
        let written = writer.write(&events).and_then(|()| writer.finish(LostEvents::default()).map(drop));
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
