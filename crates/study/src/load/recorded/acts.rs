//! What each recorded CPU did, one list for each, in a temporary file if it is long.
//!
//! A list is cut into chunks, which are written as they fill up. Who plays a list holds one chunk of it.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Mutex, PoisonError};

use pageset_core::{MigrateType, Order};
use tempfile::{SpooledTempFile, spooled_tempfile};

/// One thing that a CPU did, and how long after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) think_ns: u32,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Allocates a block that has this name.
    Alloc { name: Name, order: Order, migratetype: MigrateType },
    /// Allocates single pages, whose names are numbers from `first` on.
    Bulk { first: u64, pages: u32 },
    /// Frees the block with this name.
    Free { name: Name },
}

/// What tells the blocks of a recording apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Name {
    /// The block of the allocation event with this number.
    Block(u64),
    /// The page with this number of those that were allocated in bulk.
    Bulk(u64),
}

/// Most pages of one bulk allocation that can be stored.
pub(super) const BULK_PAGES_MAX: u32 = 1 << 16;

const ACT_BYTES: usize = 16;
/// Acts that are read at once. Guess: small beside what else a simulated CPU needs, large beside a call of the system.
const CHUNK_ACTS: usize = 1024;
/// Bytes that are kept in memory; more go to a temporary file.
const MEMORY_BYTES_MAX: usize = 64 << 20;

impl Act {
    fn to_bytes(self) -> [u8; ACT_BYTES] {
        let (tag, detail, number) = match self.what {
            What::Alloc { name, order, migratetype } => {
                (name.tag(), u32::from(order.get()) | (migratetype.index() as u32) << 8, name.number())
            }
            What::Bulk { first, pages } => (2, pages, first),
            What::Free { name } => (3 + name.tag(), 0, name.number()),
        };
        let mut bytes = [0; ACT_BYTES];
        bytes[..4].copy_from_slice(&self.think_ns.to_le_bytes());
        bytes[4..8].copy_from_slice(&(tag | detail << 8).to_le_bytes());
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; ACT_BYTES]) -> Self {
        let bytes = u128::from_le_bytes(*bytes);
        let (think_ns, tag, number) = (bytes as u32, (bytes >> 32) as u8, (bytes >> 64) as u64);
        let detail = (bytes >> 40) as u32 & 0xff_ffff;
        let name = if matches!(tag, 1 | 4) { Name::Bulk(number) } else { Name::Block(number) };
        let what = match tag {
            0 | 1 => What::Alloc {
                name,
                order: Order::new(detail as u8).unwrap_or(Order::ZERO),
                migratetype: MigrateType::from_index((detail >> 8) as usize).unwrap_or(MigrateType::Movable),
            },
            2 => What::Bulk { first: number, pages: detail },
            _ => What::Free { name },
        };
        Self { think_ns, what }
    }
}

impl Name {
    const fn tag(self) -> u32 {
        matches!(self, Self::Bulk(_)) as u32
    }

    const fn number(self) -> u64 {
        match self {
            Self::Block(number) | Self::Bulk(number) => number,
        }
    }
}

/// The lists, while they are written.
#[derive(Debug)]
pub(super) struct ActWriter {
    file: SpooledTempFile,
    bytes: u64,
    cpus: Vec<List>,
}

/// One CPU's acts.
#[derive(Debug, Default)]
struct List {
    /// Where the full chunks are in the file, and at last the one that is not full.
    chunks: Vec<u64>,
    acts: u64,
    /// What is not yet in the file.
    pending: Vec<u8>,
}

impl ActWriter {
    pub(super) fn new() -> Self {
        Self { file: spooled_tempfile(MEMORY_BYTES_MAX), bytes: 0, cpus: Vec::new() }
    }

    pub(super) fn push(&mut self, cpu: usize, act: Act) -> io::Result<()> {
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, List::default);
        }
        let list = &mut self.cpus[cpu];
        list.pending.extend(act.to_bytes());
        list.acts += 1;
        if list.pending.len() == CHUNK_ACTS * ACT_BYTES { self.flush(cpu) } else { Ok(()) }
    }

    fn flush(&mut self, cpu: usize) -> io::Result<()> {
        let list = &mut self.cpus[cpu];
        self.file.write_all(&list.pending)?;
        list.chunks.push(self.bytes);
        self.bytes += list.pending.len() as u64;
        list.pending.clear();
        Ok(())
    }

    /// The lists of the CPUs that did anything.
    pub(super) fn finish(mut self) -> io::Result<Acts> {
        for cpu in 0..self.cpus.len() {
            if !self.cpus[cpu].pending.is_empty() {
                self.flush(cpu)?;
            }
        }
        self.cpus.retain(|list| list.acts > 0);
        self.cpus.iter_mut().for_each(|list| list.pending = Vec::new());
        Ok(Acts { file: Mutex::new(self.file), cpus: self.cpus })
    }
}

/// The lists, to be read by any number of players.
#[derive(Debug)]
pub(super) struct Acts {
    file: Mutex<SpooledTempFile>,
    cpus: Vec<List>,
}

impl Acts {
    /// CPUs that did anything.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Acts of one of them.
    pub(super) fn len(&self, cpu: usize) -> u64 {
        self.cpus[cpu].acts
    }

    /// Replaces `bytes` by those of a chunk.
    fn read(&self, cpu: usize, chunk: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let list = &self.cpus[cpu];
        let left = list.acts - (chunk * CHUNK_ACTS) as u64;
        bytes.resize(left.min(CHUNK_ACTS as u64) as usize * ACT_BYTES, 0);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(list.chunks[chunk]))?;
        file.read_exact(bytes)
    }
}

/// A place in a CPU's list, with the chunk around it.
#[derive(Debug)]
pub(super) struct Cursor {
    cpu: usize,
    chunk: Option<usize>,
    /// The chunk's acts, as in the file.
    bytes: Vec<u8>,
}

impl Cursor {
    pub(super) const fn new(cpu: usize) -> Self {
        Self { cpu, chunk: None, bytes: Vec::new() }
    }

    /// The act at a position below [`Acts::len`].
    pub(super) fn act(&mut self, acts: &Acts, position: u64) -> Act {
        let (chunk, at) = (position / CHUNK_ACTS as u64, position % CHUNK_ACTS as u64);
        let chunk = chunk as usize;
        if self.chunk != Some(chunk) {
            acts.read(self.cpu, chunk, &mut self.bytes)
                .expect("what this process wrote to its own temporary file can be read");
            self.chunk = Some(chunk);
        }
        Act::from_bytes(&self.bytes.as_chunks().0[at as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_come_back_from_any_chunk_of_any_cpu() {
        let act = |number: u64| {
            let name = if number.is_multiple_of(2) { Name::Block(number << 40) } else { Name::Bulk(number) };
            let what = match number % 5 {
                0 => What::Bulk { first: number, pages: BULK_PAGES_MAX },
                1 | 2 => What::Free { name },
                _ => What::Alloc {
                    name,
                    order: Order::new((number % 11) as u8).unwrap(),
                    migratetype: MigrateType::from_index((number % 3) as usize).unwrap(),
                },
            };
            Act { think_ns: u32::MAX - number as u32, what }
        };
        let mut writer = ActWriter::new();
        for number in 0..5 * CHUNK_ACTS as u64 {
            writer.push(if number % 3 == 0 { 7 } else { 2 }, act(number)).unwrap();
        }
        let acts = writer.finish().unwrap();
        assert_eq!(acts.cpus(), 2, "those that did something");
        for (cpu, is_mine) in [(0, false), (1, true)] {
            let numbers: Vec<u64> =
                (0..5 * CHUNK_ACTS as u64).filter(|number| (number % 3 == 0) == is_mine).collect();
            assert_eq!(acts.len(cpu), numbers.len() as u64);
            let mut cursor = Cursor::new(cpu);
            for (position, number) in numbers.iter().enumerate().chain(numbers.iter().enumerate().rev()) {
                assert_eq!(cursor.act(&acts, position as u64), act(*number));
            }
        }
    }
}
