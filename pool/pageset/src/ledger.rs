//! The ledger notes facts that the base does not need: which frames are zero, and which pageblocks are
//! resident.
//!
//! The fast path neither reads nor changes the ledger. The ledger changes when blocks leave or enter the
//! base, and when the pool clears memory, populates memory or gives memory back to the system.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use pageset_core::{PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

use crate::arrays::ZeroState;
use crate::heap::{self, HeapExhausted};

/// The number of 64-bit words that hold one bit for each frame of a pageblock.
pub(crate) const FRAME_WORDS: usize = PAGEBLOCK_FRAMES as usize / 64;

/// The contents of a pool's memory when it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// All bytes are zero, because the memory is fresh from the system.
    Zero,
    /// The bytes may have any value.
    Unknown,
}

/// The state of a pageblock on its way back to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ReturnState {
    /// No frame of the pageblock was ever handed out or populated.
    Fresh = 0,
    /// Frames of the pageblock were handed out or populated.
    Resident = 1,
    /// Frames of the pageblock were handed out or populated, and the last scan found the whole pageblock
    /// free.
    Idle = 2,
    /// The pageblock's memory went back to the system.
    Returned = 3,
    /// The pageblock is out of service, because the pool was made smaller.
    Retired = 4,
}

impl ReturnState {
    fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Fresh,
            1 => Self::Resident,
            2 => Self::Idle,
            3 => Self::Returned,
            _ => Self::Retired,
        }
    }
}

/// The ledger: one bit per frame, and two bytes and one bit per pageblock.
pub(crate) struct Ledger {
    /// A bit for each frame. The bit is clear if the frame is known to be zero.
    dirty: Box<[AtomicU64]>,
    blocks: Box<[AtomicU8]>,
    /// A byte for each pageblock. If the byte is not 0, no frame of the pageblock is known to be zero.
    /// Reading this byte saves reading eight words of `dirty`.
    all_dirty: Box<[AtomicU8]>,
    /// A bit for each pageblock, which is set while the pageblock is neither `Fresh` nor `Returned`. The bit
    /// may be cleared a moment late. A scan for idle memory reads the bits to skip the untouched pageblocks
    /// of a large pool.
    in_use: Box<[AtomicU64]>,
    refaulted_blocks: AtomicU64,
}

impl Ledger {
    pub(crate) fn new(frames: usize, contents: Contents) -> Result<Self, HeapExhausted> {
        let blocks = frames.div_ceil(PAGEBLOCK_FRAMES as usize);
        let words = blocks.div_ceil(64);
        let (dirty, states, in_use) = match contents {
            // Fresh memory is zero, and the bits of a new table already say so.
            Contents::Zero => {
                (heap::zeroed(frames.div_ceil(64))?, heap::zeroed(blocks)?, heap::zeroed(words)?)
            }
            Contents::Unknown => (
                heap::made(frames.div_ceil(64), || AtomicU64::new(u64::MAX))?,
                heap::made(blocks, || AtomicU8::new(ReturnState::Resident as u8))?,
                heap::made(words, || AtomicU64::new(u64::MAX))?,
            ),
        };
        let all_dirty = heap::zeroed(blocks)?;
        Ok(Self { dirty, blocks: states, all_dirty, in_use, refaulted_blocks: AtomicU64::new(0) })
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.dirty)
            + size_of_val(&*self.blocks)
            + size_of_val(&*self.all_dirty)
            + size_of_val(&*self.in_use)
    }

    /// Notes that a user gets these frames, and returns whether all of them are zero. After the call, the
    /// frames that the user gets count as dirty.
    pub(crate) fn hand_out(&self, frames: Range<u32>) -> ZeroState {
        blocks_of(&frames).for_each(|block| self.touch(block));
        if frames.start.is_multiple_of(64) && frames.end.is_multiple_of(64) {
            return self.hand_out_words(&self.dirty[frames.start as usize / 64..frames.end as usize / 64]);
        }
        let mut zero = ZeroState::Zero;
        for (word, mask) in words_of(frames) {
            let cell = &self.dirty[word];
            let found = cell.load(Relaxed);
            if found & mask != 0 {
                zero = ZeroState::Unknown;
            }
            if found & mask != mask {
                cell.fetch_or(mask, Relaxed);
            }
        }
        zero
    }

    /// Does the same as [`hand_out`](Self::hand_out) for all frames of one pageblock.
    #[inline]
    pub(crate) fn hand_out_pageblock(&self, first: u32) -> ZeroState {
        let block = (first >> PAGEBLOCK_ORDER) as usize;
        self.touch(block);
        if self.all_dirty[block].load(Relaxed) != 0 {
            return ZeroState::Unknown;
        }
        let zero = self.hand_out_words(&self.dirty[first as usize / 64..][..PAGEBLOCK_FRAMES as usize / 64]);
        self.all_dirty[block].store(1, Relaxed);
        zero
    }

    /// Does the same as [`hand_out`](Self::hand_out) for all frames that these words of `dirty` describe. A
    /// block of 2 MiB has 8 words, which are usually dirty already.
    fn hand_out_words(&self, words: &[AtomicU64]) -> ZeroState {
        let (mut any, mut all) = (0, u64::MAX);
        for cell in words {
            let found = cell.load(Relaxed);
            any |= found;
            all &= found;
        }
        if all != u64::MAX {
            words.iter().for_each(|cell| cell.store(u64::MAX, Relaxed));
        }
        if any == 0 { ZeroState::Zero } else { ZeroState::Unknown }
    }

    /// Does the same as [`hand_out`](Self::hand_out) for the frames from `first` on whose bits are set in
    /// `bits`. `first` is a multiple of 64. Returns the bits of the frames that are zero.
    pub(crate) fn hand_out_bits(&self, first: u32, bits: u64) -> u64 {
        self.touch((first >> PAGEBLOCK_ORDER) as usize);
        let cell = &self.dirty[first as usize / 64];
        let found = cell.load(Relaxed);
        if found & bits != bits {
            cell.fetch_or(bits, Relaxed);
        }
        bits & !found
    }

    /// Notes that frames of this pageblock leave the base, for a user or an array.
    fn touch(&self, block: usize) {
        let cell = &self.blocks[block];
        let state = cell.load(Relaxed);
        if state != ReturnState::Resident as u8 {
            if state == ReturnState::Returned as u8 {
                self.refaulted_blocks.fetch_add(1, Relaxed);
            }
            self.set_block(block, ReturnState::Resident);
        }
    }

    /// Pageblocks of a range that are neither `Fresh` nor `Returned`.
    pub(crate) fn blocks_in_use(&self, blocks: Range<u32>) -> impl DoubleEndedIterator<Item = u32> + '_ {
        words_of(blocks).flat_map(|(word, mask)| {
            // Most words of a large pool have no bits set.
            let bits = self.in_use[word].load(Relaxed) & mask;
            let all = if bits == 0 { 0..0 } else { 0..64 };
            all.filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word as u32 * 64 + bit)
        })
    }

    /// Notes that these free frames are zero.
    pub(crate) fn note_zero(&self, frames: Range<u32>) {
        blocks_of(&frames).for_each(|block| self.all_dirty[block].store(0, Relaxed));
        for (word, mask) in words_of(frames) {
            self.dirty[word].fetch_and(!mask, Relaxed);
        }
    }

    /// Whether all frames are known to be zero.
    pub(crate) fn is_zero(&self, frames: Range<u32>) -> bool {
        words_of(frames).all(|(word, mask)| self.dirty[word].load(Relaxed) & mask == 0)
    }

    /// Returns a bit for each frame of a pageblock. The bit is clear if the frame is known to be zero.
    pub(crate) fn dirty_bits(&self, frames: Range<u32>) -> [u64; FRAME_WORDS] {
        let mut bits = [0; FRAME_WORDS];
        for (to, (word, mask)) in bits.iter_mut().zip(words_of(frames)) {
            *to = self.dirty[word].load(Relaxed) & mask;
        }
        bits
    }

    pub(crate) fn block(&self, block: usize) -> ReturnState {
        ReturnState::from_byte(self.blocks[block].load(Relaxed))
    }

    pub(crate) fn set_block(&self, block: usize, state: ReturnState) {
        self.blocks[block].store(state as u8, Relaxed);
        self.note_in_use(block, state);
    }

    fn note_in_use(&self, block: usize, state: ReturnState) {
        let (word, bit) = (&self.in_use[block / 64], 1 << (block % 64));
        if matches!(state, ReturnState::Fresh | ReturnState::Returned) {
            word.fetch_and(!bit, Relaxed);
        } else if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Changes a pageblock's state from `from` to `to`. Changes nothing and returns `false` if the state is
    /// not `from`.
    pub(crate) fn exchange_block(&self, block: usize, from: ReturnState, to: ReturnState) -> bool {
        let is_ours = self.blocks[block].compare_exchange(from as u8, to as u8, Relaxed, Relaxed).is_ok();
        if is_ours {
            self.note_in_use(block, to);
        }
        is_ours
    }

    pub(crate) fn refaulted_blocks(&self) -> u64 {
        self.refaulted_blocks.load(Relaxed)
    }
}

fn blocks_of(frames: &Range<u32>) -> Range<usize> {
    (frames.start >> PAGEBLOCK_ORDER) as usize..frames.end.div_ceil(PAGEBLOCK_FRAMES) as usize
}

/// The words that hold the bits of a range of frames. Each word comes with a mask that selects the bits of
/// the range.
fn words_of(frames: Range<u32>) -> impl DoubleEndedIterator<Item = (usize, u64)> {
    let words = frames.start / 64..frames.end.div_ceil(64);
    words.map(move |word| {
        let first = frames.start.saturating_sub(word * 64);
        let last = (frames.end - word * 64).min(64);
        (word as usize, (u64::MAX >> (64 - (last - first))) << first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knowledge_of_zeros_survives_only_unchanged() {
        let ledger = Ledger::new(2048, Contents::Zero).unwrap();
        assert_eq!(ledger.hand_out(60..70), ZeroState::Zero);
        assert_eq!(ledger.hand_out(69..72), ZeroState::Unknown);
        assert!(!ledger.is_zero(60..61) && ledger.is_zero(72..2048));
        ledger.note_zero(60..72);
        assert!(ledger.is_zero(0..2048));
        assert_eq!(Ledger::new(512, Contents::Unknown).unwrap().hand_out(0..1), ZeroState::Unknown);
    }

    /// Tests that a search finds exactly the touched pageblocks after each kind of state change.
    #[test]
    fn blocks_in_use_are_those_that_were_touched() {
        let ledger = Ledger::new(300 * 512, Contents::Zero).unwrap();
        let in_use = |blocks| ledger.blocks_in_use(blocks).collect::<Vec<_>>();
        assert!(in_use(0..300).is_empty());
        ledger.hand_out(0..1);
        ledger.hand_out_pageblock(70 * 512);
        ledger.hand_out_bits(200 * 512, 1);
        assert!(ledger.exchange_block(299, ReturnState::Fresh, ReturnState::Resident));
        assert!(ledger.exchange_block(70, ReturnState::Resident, ReturnState::Idle));
        assert_eq!(in_use(0..300), [0, 70, 200, 299]);
        assert_eq!((in_use(1..200), in_use(64..128)), (vec![70], vec![70]));
        ledger.set_block(70, ReturnState::Returned);
        ledger.set_block(0, ReturnState::Retired);
        assert_eq!(ledger.blocks_in_use(0..300).rev().collect::<Vec<_>>(), [299, 200, 0]);
        assert_eq!(Ledger::new(300 * 512, Contents::Unknown).unwrap().blocks_in_use(0..300).count(), 300);
    }

    #[test]
    fn a_pageblock_of_which_a_frame_became_zero_is_looked_at_again() {
        let ledger = Ledger::new(1024, Contents::Zero).unwrap();
        assert_eq!(ledger.hand_out_pageblock(512), ZeroState::Zero);
        assert_eq!(ledger.hand_out_pageblock(512), ZeroState::Unknown);
        ledger.note_zero(512..1023);
        assert_eq!(ledger.hand_out_pageblock(512), ZeroState::Unknown);
        ledger.note_zero(512..1024);
        assert_eq!(ledger.hand_out_pageblock(512), ZeroState::Zero);
    }

    #[test]
    fn a_returned_block_that_is_used_again_is_counted() {
        let ledger = Ledger::new(1024, Contents::Zero).unwrap();
        ledger.set_block(1, ReturnState::Returned);
        ledger.hand_out(511..513);
        assert_eq!(ledger.refaulted_blocks(), 1);
        assert_eq!((ledger.block(0), ledger.block(1)), (ReturnState::Resident, ReturnState::Resident));
        ledger.hand_out(512..1024);
        assert_eq!(ledger.refaulted_blocks(), 1);
    }
}
