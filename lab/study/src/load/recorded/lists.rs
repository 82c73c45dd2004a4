//! For each recorded CPU, a list of its operations (*acts*). Long lists are in a temporary file.
//!
//! Each list is divided into chunks of equal length. The writer writes a chunk to the file when the chunk is
//! full. A reader has one chunk of a list in memory.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Mutex, PoisonError};

use pageset_core::{MigrateType, Order, ZoneKind};
use pageset_replay::operations::{BlockName, What};
use tempfile::{SpooledTempFile, spooled_tempfile};

/// One operation of a CPU, and the time since the CPU's previous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paced {
    pub(super) think_ns: u32,
    pub(super) what: What,
}

const BYTES: usize = 12;
/// Number of acts in a chunk. Guess: a chunk takes little memory, compared with the stack and the other data
/// of a simulated CPU. A chunk is so large that the system call that reads the chunk costs little per act.
const CHUNK: usize = 1024;
/// Largest size of all lists together that stays in memory, in bytes. Longer lists go to a temporary file.
const MEMORY_BYTES_MAX: usize = 64 << 20;

/// The kinds of zones that a request may be limited to. In place of a kind of zone, the temporary file stores
/// the index of the kind in [`ZONES`].
const ZONES: [ZoneKind; 4] = [ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable];

impl Paced {
    fn to_bytes(self) -> [u8; BYTES] {
        let (tag, detail, number) = match self.what {
            What::Alloc { block, order, migratetype, highest } => {
                let zone = ZONES.iter().position(|zone| *zone == highest).unwrap_or(ZONES.len() - 1);
                let of_block = u32::from(order.get()) | (migratetype.index() as u32) << 8;
                (tag(block), of_block | (zone as u32) << 16, number(block))
            }
            What::Bulk { first, pages } => (2, pages, first),
            What::Free { block } => (3 + tag(block), 0, number(block)),
        };
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.think_ns.to_le_bytes());
        bytes[4..8].copy_from_slice(&(tag | detail << 8).to_le_bytes());
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; BYTES]) -> Self {
        let [think_ns, detail, number] =
            [0, 4, 8].map(|at| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
        let (tag, detail) = (detail as u8, detail >> 8);
        let block = if matches!(tag, 1 | 4) { BlockName::Bulk(number) } else { BlockName::Alone(number) };
        let what = match tag {
            0 | 1 => What::Alloc {
                block,
                order: Order::new(detail as u8).unwrap_or(Order::ZERO),
                migratetype: MigrateType::from_index((detail >> 8 & 0xff) as usize)
                    .unwrap_or(MigrateType::Movable),
                highest: ZONES[(detail >> 16) as usize % ZONES.len()],
            },
            2 => What::Bulk { first: number, pages: detail },
            _ => What::Free { block },
        };
        Self { think_ns, what }
    }
}

const fn tag(block: BlockName) -> u32 {
    matches!(block, BlockName::Bulk(_)) as u32
}

const fn number(block: BlockName) -> u32 {
    match block {
        BlockName::Alone(number) | BlockName::Bulk(number) => number,
    }
}

/// The lists of all CPUs while the recording is being read.
#[derive(Debug)]
pub(super) struct ListWriter {
    file: SpooledTempFile,
    bytes: u64,
    cpus: Vec<List>,
}

/// One CPU's list.
#[derive(Debug, Default)]
struct List {
    /// Positions of the list's chunks in the file. The last chunk may be only partly full.
    chunks: Vec<u64>,
    len: u64,
    /// Acts that the writer has not yet written to the file.
    pending: Vec<u8>,
}

impl ListWriter {
    pub(super) fn new() -> Self {
        Self { file: spooled_tempfile(MEMORY_BYTES_MAX), bytes: 0, cpus: Vec::new() }
    }

    pub(super) fn push(&mut self, cpu: usize, paced: Paced) -> io::Result<()> {
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, List::default);
        }
        let list = &mut self.cpus[cpu];
        list.pending.extend(paced.to_bytes());
        list.len += 1;
        if list.pending.len() == CHUNK * BYTES { self.flush(cpu) } else { Ok(()) }
    }

    fn flush(&mut self, cpu: usize) -> io::Result<()> {
        let list = &mut self.cpus[cpu];
        self.file.write_all(&list.pending)?;
        list.chunks.push(self.bytes);
        self.bytes += list.pending.len() as u64;
        list.pending.clear();
        Ok(())
    }

    /// Writes the last chunk of each list to the file. Returns the lists of the CPUs that did at least one
    /// operation.
    pub(super) fn finish(mut self) -> io::Result<Lists> {
        for cpu in 0..self.cpus.len() {
            if !self.cpus[cpu].pending.is_empty() {
                self.flush(cpu)?;
            }
        }
        self.cpus.retain(|list| list.len > 0);
        self.cpus.iter_mut().for_each(|list| list.pending = Vec::new());
        Ok(Lists { file: Mutex::new(self.file), cpus: self.cpus })
    }
}

/// The finished lists of all CPUs. Several readers can use the lists at the same time.
#[derive(Debug)]
pub(super) struct Lists {
    file: Mutex<SpooledTempFile>,
    cpus: Vec<List>,
}

impl Lists {
    /// Number of CPUs that did at least one operation.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Number of acts in one CPU's list.
    pub(super) fn len(&self, cpu: usize) -> u64 {
        self.cpus[cpu].len
    }

    /// Reads a chunk of a CPU's list from the file into `bytes`.
    fn read(&self, cpu: usize, chunk: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let list = &self.cpus[cpu];
        let left = list.len - (chunk * CHUNK) as u64;
        bytes.resize(left.min(CHUNK as u64) as usize * BYTES, 0);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(list.chunks[chunk]))?;
        file.read_exact(bytes)
    }
}

/// A position in a CPU's list, and the chunk that contains this position.
#[derive(Debug)]
pub(super) struct Cursor {
    cpu: usize,
    chunk: Option<usize>,
    /// The bytes of the chunk, in the format of the temporary file.
    bytes: Vec<u8>,
}

impl Cursor {
    pub(super) const fn new(cpu: usize) -> Self {
        Self { cpu, chunk: None, bytes: Vec::new() }
    }

    /// Returns the act at a position below [`Lists::len`].
    pub(super) fn at(&mut self, lists: &Lists, position: u64) -> Paced {
        let (chunk, at) = (position / CHUNK as u64, position % CHUNK as u64);
        let chunk = chunk as usize;
        if self.chunk != Some(chunk) {
            lists
                .read(self.cpu, chunk, &mut self.bytes)
                .expect("this process can read its own temporary file");
            self.chunk = Some(chunk);
        }
        Paced::from_bytes(&self.bytes.as_chunks().0[at as usize])
    }
}

#[cfg(test)]
mod tests {
    use pageset_replay::operations::BULK_PAGES_MAX;

    use super::*;

    #[test]
    fn things_come_back_from_any_chunk_of_any_cpu() {
        let paced = |number: u64| {
            let block = match number {
                0 | 2 | 4 => BlockName::Alone(u32::MAX - number as u32),
                _ if number.is_multiple_of(2) => BlockName::Alone(number as u32),
                _ => BlockName::Bulk(number as u32),
            };
            let what = match number % 5 {
                0 => What::Bulk { first: number as u32, pages: BULK_PAGES_MAX },
                1 | 2 => What::Free { block },
                _ => What::Alloc {
                    block,
                    order: Order::new((number % 11) as u8).unwrap(),
                    migratetype: MigrateType::from_index((number % 3) as usize).unwrap(),
                    highest: ZONES[(number % 4) as usize],
                },
            };
            Paced { think_ns: u32::MAX - number as u32, what }
        };
        let mut writer = ListWriter::new();
        for number in 0..5 * CHUNK as u64 {
            writer.push(if number % 3 == 0 { 7 } else { 2 }, paced(number)).unwrap();
        }
        let lists = writer.finish().unwrap();
        assert_eq!(lists.cpus(), 2, "only CPUs with operations have lists");
        for (cpu, is_mine) in [(0, false), (1, true)] {
            let numbers: Vec<u64> =
                (0..5 * CHUNK as u64).filter(|number| (number % 3 == 0) == is_mine).collect();
            assert_eq!(lists.len(cpu), numbers.len() as u64);
            let mut cursor = Cursor::new(cpu);
            for (position, number) in numbers.iter().enumerate().chain(numbers.iter().enumerate().rev()) {
                assert_eq!(cursor.at(&lists, position as u64), paced(*number));
            }
        }
    }
}
