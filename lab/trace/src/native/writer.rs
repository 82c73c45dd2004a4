//! Writes a native file from front to back, with one block of events in memory.

use std::io::{self, Write};

use super::{
    block::Encoder,
    description,
    format::{BLOCKS_MAX, FileHeader, Footer, VERSION_MAJOR, VERSION_MINOR, VERSION_MINOR_CLOSING},
    index::Index,
};
use crate::{event::Event, info::LostEvents, info::TraceInfo, reader::BLOCK_EVENTS_MAX};

/// Options for writing a native file.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    level: i32,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { level: 9 }
    }
}

impl WriteOptions {
    /// The default: zstd level 9.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Compression level, 1 (fast) to 22 (small). The level does not affect the speed of reading.
    #[must_use]
    pub fn level(mut self, level: i32) -> Self {
        self.level = level.clamp(1, 22);
        self
    }
}

/// Writes a native file. The file is complete only after [`NativeWriter::finish`].
pub struct NativeWriter<W: Write> {
    out: W,
    offset: u64,
    level: i32,
    encoder: Encoder,
    pending: Vec<Event>,
    payload: Vec<u8>,
    index: Index,
}

impl<W: Write> NativeWriter<W> {
    /// Writes header and description.
    ///
    /// # Errors
    /// `out` cannot be written, or the description is larger than 64 MiB.
    pub fn new(out: W, info: &TraceInfo, options: WriteOptions) -> io::Result<Self> {
        Self::with_version(out, info, options, VERSION_MINOR)
    }

    /// Writes header and a description that [`NativeWriter::finish_with`] will replace, for a recording whose
    /// end is still unknown. If the file is cut off before `finish_with` is called, readers use this
    /// description.
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
            encoder: Encoder::new(options.level)?,
            pending: Vec::with_capacity(BLOCK_EVENTS_MAX),
            payload: Vec::new(),
            index: Index::default(),
        })
    }

    /// Adds events. Adds an event. As soon as a block is full, it is written to `out`.
    ///
    /// # Errors
    /// `out` cannot be written.
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
    /// Call this rarely, such as once a second: the events then need more bytes than in full blocks.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_block()?;
        self.out.flush()
    }

    fn flush_block(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.index.blocks.len() == BLOCKS_MAX {
            return Err(io::Error::other("a trace of more than 2^36 events does not fit one file"));
        }
        let header = self.encoder.encode(&self.pending, &mut self.payload)?;
        self.index.add(self.offset, &header, &self.pending);
        let bytes = header.to_bytes();
        self.out.write_all(&bytes)?;
        self.out.write_all(&self.payload)?;
        self.offset += (bytes.len() + self.payload.len()) as u64;
        self.pending.clear();
        Ok(())
    }

    /// Writes the last block, the index and the footer. Returns `out` and the file's size in bytes.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn finish(mut self, lost: LostEvents) -> io::Result<(W, u64)> {
        self.flush_block()?;
        self.close(lost)
    }

    /// Does the same as [`NativeWriter::finish`], with a description that replaces the one at the head.
    ///
    /// # Errors
    /// `out` cannot be written, or the description is larger than 64 MiB.
    pub fn finish_with(mut self, info: &TraceInfo, lost: LostEvents) -> io::Result<(W, u64)> {
        self.flush_block()?;
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
