//! The index at the file's end. The index has the file offset of each block of events, the number of events
//! of each kind, the number of events on each CPU, and the numbers of lost events.

use super::format::{
    BLOCKS_MAX, BlockHeader, CPUS_MAX, INDEX_ENTRY_BYTES, INDEX_HEADER_BYTES, INDEX_MAGIC, KindCounts,
    get_u32, get_u64,
};
use crate::{
    event::{Event, EventKind},
    info::LostEvents,
};

/// The index's entry for one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// Offset of the block's header in bytes from the file's start.
    pub offset: u64,
    /// Number of events in the block.
    pub events: u32,
    /// Kinds of the block's events, as bits. Bit `k` stands for the kind with code `k`.
    pub kinds: u32,
    /// Time of the block's first event.
    pub first_ts_ns: u64,
    /// Latest time in the block.
    pub last_ts_ns: u64,
}

/// The whole index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) blocks: Vec<BlockEntry>,
    /// Bytes of the closing description, which lies directly before the index. 0 if there is none.
    pub(super) closing_bytes: u32,
    pub(super) kinds: KindCounts,
    pub(super) cpus: Vec<u64>,
    pub(super) lost: LostEvents,
}

/// The counts of lost events, in the order of the file.
fn lost_words(lost: &mut LostEvents) -> [&mut u64; LOST_WORDS] {
    let LostEvents {
        overrun,
        dropped,
        lost_in_text,
        gaps_of_unknown_size,
        unknown_events,
        unrecognised_lines,
        malformed_lines,
        oversized_lines,
        unknown_gfp_names,
        out_of_order,
        damaged_blocks,
        taken,
    } = lost;
    [
        overrun,
        dropped,
        lost_in_text,
        gaps_of_unknown_size,
        unknown_events,
        unrecognised_lines,
        malformed_lines,
        oversized_lines,
        unknown_gfp_names,
        out_of_order,
        damaged_blocks,
        taken,
    ]
}

const LOST_WORDS: usize = 12;
/// Number of counts of losses that every index has. A further count is written only if it is not 0.
const LOST_WORDS_MIN: usize = 11;

/// Number of kinds that every index counts. An index counts later kinds only if the file has an event of a
/// later kind. Programs that do not know the later kinds can read all files without events of the later
/// kinds.
const KINDS_MIN: usize = 20;

impl Index {
    /// Adds a block that was written at `offset`.
    pub(super) fn add(&mut self, offset: u64, header: &BlockHeader, events: &[Event]) {
        self.blocks.push(BlockEntry {
            offset,
            events: header.events,
            kinds: header.kinds,
            first_ts_ns: header.first_ts_ns,
            last_ts_ns: header.last_ts_ns,
        });
        for event in events {
            self.kinds[usize::from(event.kind.code())] += 1;
            let cpu = usize::from(event.cpu);
            if cpu >= self.cpus.len() {
                self.cpus.resize(cpu + 1, 0);
            }
            self.cpus[cpu] += 1;
        }
    }

    pub(super) fn events(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.events)).sum()
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(INDEX_MAGIC);
        bytes.extend((self.blocks.len() as u32).to_le_bytes());
        bytes.extend((self.cpus.len() as u32).to_le_bytes());
        bytes.extend(self.closing_bytes.to_le_bytes());
        for block in &self.blocks {
            bytes.extend(block.offset.to_le_bytes());
            bytes.extend(block.events.to_le_bytes());
            bytes.extend(block.kinds.to_le_bytes());
            bytes.extend(block.first_ts_ns.to_le_bytes());
            bytes.extend(block.last_ts_ns.to_le_bytes());
        }
        let mut lost = self.lost;
        let is_used = self.kinds[KINDS_MIN + 1..].iter().any(|count| *count > 0);
        let kinds = if is_used { EventKind::COUNT } else { KINDS_MIN };
        let words = self.kinds[1..=kinds].iter().copied().chain(self.cpus.iter().copied());
        let lost = lost_words(&mut lost).map(|word| *word);
        let is_used = lost[LOST_WORDS_MIN..].iter().any(|count| *count > 0);
        let lost = &lost[..if is_used { LOST_WORDS } else { LOST_WORDS_MIN }];
        for word in words.chain(lost.iter().copied()) {
            bytes.extend(word.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes);
        bytes.extend(crc.to_le_bytes());
        bytes
    }

    /// Parses the index. The error is a sentence about the problem.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, &'static str> {
        let Some((body, crc)) = bytes.split_last_chunk::<4>() else { return Err("the index is cut off") };
        if crc32fast::hash(body) != u32::from_le_bytes(*crc) {
            return Err("the index's checksum is wrong");
        }
        if body.len() < INDEX_HEADER_BYTES || body[..4] != INDEX_MAGIC {
            return Err("no index starts here");
        }
        let blocks = get_u32(body, 4) as usize;
        let cpus = get_u32(body, 8) as usize;
        if blocks > BLOCKS_MAX || cpus > CPUS_MAX {
            return Err("the index has too many blocks or CPUs");
        }
        let entries = INDEX_HEADER_BYTES + blocks * INDEX_ENTRY_BYTES;
        let is_long = |kinds: usize, lost: usize| body.len() == entries + (kinds + cpus + lost) * 8;
        // The length of an index has one of four values, which show the counts that the index has.
        let kinds = [KINDS_MIN, EventKind::COUNT]
            .into_iter()
            .find(|kinds| is_long(*kinds, LOST_WORDS_MIN) || is_long(*kinds, LOST_WORDS))
            .ok_or("the index has the wrong length")?;
        let mut index = Self {
            blocks: body[INDEX_HEADER_BYTES..entries]
                .chunks_exact(INDEX_ENTRY_BYTES)
                .map(|entry| BlockEntry {
                    offset: get_u64(entry, 0),
                    events: get_u32(entry, 8),
                    kinds: get_u32(entry, 12),
                    first_ts_ns: get_u64(entry, 16),
                    last_ts_ns: get_u64(entry, 24),
                })
                .collect(),
            closing_bytes: get_u32(body, 12),
            ..Self::default()
        };
        let mut words = body[entries..].chunks_exact(8).map(|word| get_u64(word, 0));
        for (count, word) in index.kinds[1..=kinds].iter_mut().zip(&mut words) {
            *count = word;
        }
        index.cpus = words.by_ref().take(cpus).collect();
        for (count, word) in lost_words(&mut index.lost).into_iter().zip(words) {
            *count = word;
        }
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        let mut index = Index::default();
        let events =
            [Event::new(EventKind::MmPageAlloc, 5, 2), Event::new(EventKind::KswapdSwitchedOut, 9, 0)];
        let header = BlockHeader {
            payload_bytes: 1,
            events: 2,
            crc: 0,
            first_ts_ns: 5,
            last_ts_ns: 9,
            kinds: 1 << 1 | 1 << 20,
        };
        index.add(100, &header, &events);
        index.closing_bytes = 5;
        index.lost.damaged_blocks = 3;
        index.lost.overrun = 4;
        index
    }

    #[test]
    fn an_index_survives() {
        let index = index();
        assert_eq!(index.cpus, [1, 0, 1]);
        assert_eq!(Index::from_bytes(&index.to_bytes()), Ok(index));
    }

    #[test]
    fn kinds_that_came_later_take_no_room_where_there_are_none() {
        let without = index().to_bytes();
        let mut with = index();
        with.kinds[usize::from(EventKind::MmPagePcpuRefill.code())] = 7;
        assert_eq!(with.to_bytes().len(), without.len() + (EventKind::COUNT - KINDS_MIN) * 8);
        assert_eq!(Index::from_bytes(&with.to_bytes()), Ok(with));
    }

    #[test]
    fn losses_that_came_later_take_no_room_where_there_are_none() {
        let without = index().to_bytes();
        let mut with = index();
        with.lost.taken = 9;
        assert_eq!(with.to_bytes().len(), without.len() + (LOST_WORDS - LOST_WORDS_MIN) * 8);
        assert_eq!(Index::from_bytes(&with.to_bytes()), Ok(with.clone()));
        with.kinds[usize::from(EventKind::MmPagePcpuRefill.code())] = 7;
        assert_eq!(Index::from_bytes(&with.to_bytes()), Ok(with));
    }

    const _: () = assert!(EventKind::COUNT - KINDS_MIN != LOST_WORDS - LOST_WORDS_MIN);

    #[test]
    fn every_damaged_byte_is_noticed() {
        let bytes = index().to_bytes();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Index::from_bytes(&damaged).is_err(), "byte {at}");
            assert!(Index::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
