//! Reads a native file block by block. In a file with an index, reading can start at any time of the
//! recording.

use std::{
    fs::File,
    io::{self, Read, SeekFrom},
    path::Path,
};

use super::{
    block::{Decoder, kinds},
    description::{self, Unreadable},
    format::{
        BLOCK_HEADER_BYTES, BLOCKS_MAX, BlockHeader, CLOSING_HEADER_BYTES, CLOSING_MAGIC, CPUS_MAX,
        DescriptionHeader, FILE_HEADER_BYTES, FOOTER_BYTES, FileHeader, Footer, INDEX_ENTRY_BYTES,
        VERSION_MAJOR,
    },
    index::{BlockEntry, Index},
};
use crate::{
    damage::Recovery,
    error::TraceError,
    event::{Event, EventKind},
    info::{LostEvents, TraceInfo},
    input::Seekable,
    reader::TraceReader,
};

const REMEDY_HEADER: &str = "copy or convert the trace again";

/// Reads a native file.
pub struct NativeReader {
    info: TraceInfo,
    file: Box<dyn Seekable>,
    /// Offset of the next block.
    offset: u64,
    /// Offset of the end of the blocks: where the index begins, or the file's end if there is no index.
    end: u64,
    index: Option<Index>,
    recovery: Recovery,
    decoder: Decoder,
    payload: Vec<u8>,
    /// Events before this time are left out of the next block. A seek sets `skip_before_ns`.
    skip_before_ns: u64,
    events_read: u64,
    lost: LostEvents,
    is_at_end: bool,
    has_sought: bool,
}

impl NativeReader {
    /// Opens the native file at `path`, which must not be compressed as a whole.
    ///
    /// # Errors
    /// An error if the file cannot be read, or is not a native file. If `recovery` refuses damage, also an
    /// error if the file's head or index is damaged.
    pub fn open(path: &Path, recovery: Recovery) -> Result<Self, TraceError> {
        let file = File::open(path).map_err(|error| TraceError::io(path, "open", error))?;
        Self::new(path, Box::new(file), recovery)
    }

    pub(crate) fn new(
        path: &Path,
        mut file: Box<dyn Seekable>,
        recovery: Recovery,
    ) -> Result<Self, TraceError> {
        let (mut info, offset) = read_description(path, &mut file)?;
        info.path = path.to_owned();
        let size =
            file.seek(SeekFrom::End(0)).map_err(|error| TraceError::io(path, "find the end of", error))?;
        let mut damage = None;
        let (index, end) = match read_index(path, &mut file, offset, size) {
            Ok((index, end)) => (Some(index), end),
            Err(error) => {
                damage = Some(error);
                (None, size)
            }
        };
        if let Some(index) = index.as_ref().filter(|index| index.closing_bytes > 0) {
            match read_closing(path, &mut file, index.closing_bytes, end + u64::from(index.closing_bytes)) {
                Ok(closing) => info = TraceInfo { path: path.to_owned(), ..closing },
                // Use the description at the head, which has the facts that were known at the beginning of
                // the recording.
                Err(error) => damage = Some(error),
            }
        }
        let lost = match &index {
            Some(index) => {
                info.events = Some(index.events());
                index.lost
            }
            None => {
                info.events = None;
                info.lost
            }
        };
        info.lost = lost;
        let decoder = Decoder::new().map_err(|error| TraceError::io(path, "unpack", error))?;
        let mut reader = Self {
            info,
            file,
            offset,
            end,
            index,
            recovery,
            decoder,
            payload: Vec::new(),
            skip_before_ns: 0,
            events_read: 0,
            lost,
            is_at_end: false,
            has_sought: false,
        };
        match damage {
            Some(error) if recovery == Recovery::Refuse => Err(reader.refusal(error)),
            _ => Ok(reader),
        }
    }

    /// Makes the error of a reader that refuses damage. The error mentions recovery only if recovery would
    /// read some events.
    fn refusal(&mut self, error: TraceError) -> TraceError {
        match error {
            TraceError::Damaged { path, offset, problem }
                if self.events_read == 0 && !self.has_sought && self.next_block(&mut Vec::new()).is_err() =>
            {
                TraceError::Offset { path, offset, problem, remedy: NOTHING_LEFT.to_owned() }
            }
            error => error,
        }
    }

    pub(crate) const fn info_mut(&mut self) -> &mut TraceInfo {
        &mut self.info
    }

    /// The index's entries for the blocks, by position. The list is empty if the file is damaged and has no
    /// index.
    #[must_use]
    pub fn blocks(&self) -> &[BlockEntry] {
        self.index.as_ref().map_or(&[], |index| &index.blocks)
    }

    /// Number of events of each kind, from the index.
    #[must_use]
    pub fn kind_counts(&self) -> Option<[(EventKind, u64); EventKind::COUNT]> {
        let index = self.index.as_ref()?;
        Some(EventKind::ALL.map(|kind| (kind, index.kinds[usize::from(kind.code())])))
    }

    /// Number of events on each CPU, from the index.
    #[must_use]
    pub fn cpu_counts(&self) -> Option<&[u64]> {
        self.index.as_ref().map(|index| index.cpus.as_slice())
    }

    /// Reads the header of the block at `at`. Returns the header and the end of the block.
    fn block_header(&mut self, at: u64) -> Result<(BlockHeader, u64), TraceError> {
        let damaged = |problem: &str| TraceError::damaged(&self.info.path, at, problem);
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        self.file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|error| read_error(&self.info.path, at, error))?;
        let header = BlockHeader::from_bytes(&bytes).map_err(damaged)?;
        let end = at + BLOCK_HEADER_BYTES as u64 + u64::from(header.payload_bytes);
        if end > self.end {
            return Err(damaged("the block goes past the end of the blocks"));
        }
        Ok((header, end))
    }

    /// Reads the rest of the block at `at`. The header of this block was read just before.
    fn block_events(
        &mut self,
        at: u64,
        header: &BlockHeader,
        events: &mut Vec<Event>,
    ) -> Result<(), TraceError> {
        let path = &self.info.path;
        self.payload.resize(header.payload_bytes as usize, 0);
        self.file.read_exact(&mut self.payload).map_err(|error| read_error(path, at, error))?;
        self.decoder
            .decode(header, &self.payload, events)
            .map_err(|problem| TraceError::damaged(path, at, problem))?;
        if kinds(events) != header.kinds {
            let problem = "the block has events of other kinds than its header says";
            return Err(TraceError::damaged(path, at, problem));
        }
        Ok(())
    }

    /// Reads the block at `self.offset`.
    fn next_block(&mut self, events: &mut Vec<Event>) -> Result<(), TraceError> {
        let (header, end) = self.block_header(self.offset)?;
        self.block_events(self.offset, &header, events)?;
        self.offset = end;
        self.events_read += events.len() as u64;
        Ok(())
    }

    /// Whether a closing description starts at `at`.
    fn is_closing(&mut self, at: u64) -> bool {
        let mut magic = [0; CLOSING_MAGIC.len()];
        let read = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.read_exact(&mut magic));
        read.is_ok() && magic == CLOSING_MAGIC
    }

    /// Whether the block at `self.offset` or a later block has a tick.
    fn find_tick(&mut self) -> Result<bool, TraceError> {
        let work = 1 << EventKind::WorkqueueExecuteStart.code();
        let (mut at, mut events) = (self.offset, Vec::new());
        while at < self.end {
            let (header, end) = self.block_header(at)?;
            // A reader with recovery delivers no event after a damaged block. To find the damage, read every
            // block.
            if header.kinds & work != 0 || self.recovery == Recovery::UpToDamage {
                self.block_events(at, &header, &mut events)?;
                if events.iter().any(|event| event.is_tick() && event.ts_ns >= self.skip_before_ns) {
                    return Ok(true);
                }
            }
            at = end;
        }
        Ok(false)
    }

    /// Checks at the end that the number of events equals the number in the index.
    fn check_count(&mut self) -> Result<(), TraceError> {
        let Some(index) = &self.index else { return Ok(()) };
        if self.has_sought || index.events() == self.events_read {
            return Ok(());
        }
        if self.recovery == Recovery::UpToDamage {
            self.lost.damaged_blocks += 1;
            return Ok(());
        }
        let problem =
            format!("the blocks hold {} events, but the index says {}", self.events_read, index.events());
        let error = TraceError::damaged(&self.info.path, self.offset, problem);
        Err(self.refusal(error))
    }
}

impl TraceReader for NativeReader {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        events.clear();
        while !self.is_at_end {
            if self.offset >= self.end {
                self.is_at_end = true;
                self.check_count()?;
                break;
            }
            if let Err(error) = self.next_block(events) {
                events.clear();
                self.is_at_end = true;
                // The file is cut off exactly after its last block, so no event is lost.
                if self.index.is_none() && self.is_closing(self.offset) {
                    break;
                }
                if self.recovery == Recovery::Refuse || self.events_read == 0 {
                    return Err(self.refusal(error));
                }
                self.lost.damaged_blocks += 1;
                break;
            }
            if self.skip_before_ns > 0 {
                let skipped = events.iter().take_while(|event| event.ts_ns < self.skip_before_ns).count();
                events.drain(..skipped);
                if events.is_empty() {
                    continue;
                }
                self.skip_before_ns = 0;
            }
            return Ok(events.len());
        }
        Ok(0)
    }

    fn has_ticks(&mut self, _: &mut dyn FnMut()) -> Result<bool, TraceError> {
        if self.is_at_end {
            return Ok(false);
        }
        match self.find_tick() {
            Err(_) if self.recovery == Recovery::UpToDamage => Ok(false),
            found => found.map_err(|error| self.refusal(error)),
        }
    }

    fn lost(&self) -> LostEvents {
        self.lost
    }

    fn seek_ns(&mut self, ts_ns: u64) -> Result<(), TraceError> {
        let Some(index) = &self.index else {
            return Err(TraceError::file(
                &self.info.path,
                "has no index, because it is damaged",
                "convert its undamaged part to a new file first",
            ));
        };
        // Times may decrease a little between blocks (see LostEvents::out_of_order), so search from the first
        // block on.
        let block = index.blocks.iter().find(|block| block.last_ts_ns >= ts_ns);
        self.offset = block.map_or(self.end, |block| block.offset);
        self.is_at_end = block.is_none();
        self.has_sought = true;
        self.skip_before_ns = ts_ns;
        Ok(())
    }
}

/// The remedy for a file without any event that recovery could read.
const NOTHING_LEFT: &str = "no event before this can be read, so copy or record the trace again";

const ENDS_WITHIN: &str = "the file ends inside the part that starts here";

fn header_read_error(path: &Path, error: io::Error) -> TraceError {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        TraceError::offset(path, 0, ENDS_WITHIN, REMEDY_HEADER)
    } else {
        TraceError::io(path, "read", error)
    }
}

fn read_error(path: &Path, offset: u64, error: io::Error) -> TraceError {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        TraceError::damaged(path, offset, ENDS_WITHIN)
    } else {
        TraceError::io(path, "read", error)
    }
}

/// Reads the description. Returns the description and the offset of the first block.
fn read_description(path: &Path, file: &mut Box<dyn Seekable>) -> Result<(TraceInfo, u64), TraceError> {
    let mut bytes = [0; FILE_HEADER_BYTES];
    file.read_exact(&mut bytes).map_err(|error| header_read_error(path, error))?;
    let header = FileHeader::from_bytes(&bytes).map_err(|problem| {
        let major = u16::from_le_bytes([bytes[8], bytes[9]]);
        let remedy = if major > VERSION_MAJOR { "update this program" } else { REMEDY_HEADER };
        TraceError::offset(path, 0, problem, remedy)
    })?;
    let packed =
        DescriptionHeader { stored_bytes: header.stored_bytes, raw_bytes: header.raw_bytes, crc: header.crc };
    let info = description::read(file, packed).map_err(|unreadable| match unreadable {
        Unreadable::Io(error) => TraceError::io(path, "read", error),
        Unreadable::Damaged(problem) => {
            TraceError::offset(path, FILE_HEADER_BYTES as u64, problem, REMEDY_HEADER)
        }
    })?;
    Ok((info, FILE_HEADER_BYTES as u64 + u64::from(header.stored_bytes)))
}

/// Reads the closing description, which has the `bytes` bytes before `end`.
fn read_closing(
    path: &Path,
    file: &mut Box<dyn Seekable>,
    bytes: u32,
    end: u64,
) -> Result<TraceInfo, TraceError> {
    let start = end - u64::from(bytes);
    let damaged = |problem: String| TraceError::damaged(path, start, problem);
    let mut head = [0; CLOSING_HEADER_BYTES];
    file.seek(SeekFrom::Start(start))
        .and_then(|_| file.read_exact(&mut head))
        .map_err(|error| read_error(path, start, error))?;
    let header = DescriptionHeader::from_bytes(&head).map_err(|problem| damaged(problem.to_owned()))?;
    if header.stored_bytes.checked_add(CLOSING_HEADER_BYTES as u32) != Some(bytes) {
        return Err(damaged(
            "the closing description does not have the length that the index says".to_owned(),
        ));
    }
    description::read(file, header).map_err(|unreadable| match unreadable {
        Unreadable::Io(error) => TraceError::io(path, "read", error),
        Unreadable::Damaged(problem) => damaged(problem),
    })
}

/// Reads the index. Returns the index and the end of the blocks.
fn read_index(
    path: &Path,
    file: &mut Box<dyn Seekable>,
    blocks_offset: u64,
    size: u64,
) -> Result<(Index, u64), TraceError> {
    let damaged = |offset: u64, problem: &str| TraceError::damaged(path, offset, problem);
    let truncated = || damaged(size, "the file is truncated: it does not end with a footer");
    let footer_offset = size
        .checked_sub(FOOTER_BYTES as u64)
        .filter(|offset| *offset >= blocks_offset)
        .ok_or_else(truncated)?;
    let mut bytes = [0; FOOTER_BYTES];
    file.seek(SeekFrom::Start(footer_offset))
        .and_then(|_| file.read_exact(&mut bytes))
        .map_err(|error| read_error(path, footer_offset, error))?;
    let footer = Footer::from_bytes(&bytes).ok_or_else(truncated)?;
    let index_bytes_max = 1024 + BLOCKS_MAX * INDEX_ENTRY_BYTES + CPUS_MAX * 8;
    if footer.index_offset < blocks_offset
        || footer.index_offset.checked_add(u64::from(footer.index_bytes)) != Some(footer_offset)
        || footer.index_bytes as usize > index_bytes_max
    {
        return Err(damaged(footer_offset, "the footer points to an index that cannot be there"));
    }
    let mut bytes = vec![0; footer.index_bytes as usize];
    file.seek(SeekFrom::Start(footer.index_offset))
        .and_then(|_| file.read_exact(&mut bytes))
        .map_err(|error| read_error(path, footer.index_offset, error))?;
    let index = Index::from_bytes(&bytes).map_err(|problem| damaged(footer.index_offset, problem))?;
    let blocks_end = footer
        .index_offset
        .checked_sub(u64::from(index.closing_bytes))
        .filter(|end| *end >= blocks_offset)
        .ok_or_else(|| damaged(footer.index_offset, "the closing description cannot be that long"))?;
    let mut last = blocks_offset;
    for block in &index.blocks {
        if block.offset < last || block.offset >= blocks_end {
            return Err(damaged(
                footer.index_offset,
                "the index has blocks outside the file or out of order",
            ));
        }
        last = block.offset + 1;
    }
    Ok((index, blocks_end))
}
