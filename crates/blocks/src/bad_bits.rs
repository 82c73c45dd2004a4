//! Which frames of a pageblock are out of service for good: a bit each.

use pageset_core::PAGEBLOCK_FRAMES;

use crate::atomic::{AcqRel, Acquire, AtomicUsize, Release, array, constant};
use crate::free_bits::{WORD_FRAMES, WORDS};
use crate::tail_bits::words_of;

/// The frames of a pageblock that are out of service. Read and written only in pageblocks that have such frames.
#[derive(Debug)]
pub struct BadBits {
    words: [AtomicUsize; WORDS],
}

impl Default for BadBits {
    fn default() -> Self {
        Self::new()
    }
}

impl BadBits {
    constant! {
        /// An entry of a table, to be filled when the allocator is built.
        #[must_use]
        pub fn new() -> Self {
            Self { words: array!(AtomicUsize::new(0)) }
        }
    }

    pub(crate) fn is_bad(&self, frame: usize) -> bool {
        debug_assert!(frame < PAGEBLOCK_FRAMES as usize);
        self.words[frame / WORD_FRAMES].load(Acquire) >> (frame % WORD_FRAMES) & 1 == 1
    }

    /// These frames are out of service.
    pub(crate) fn mark(&self, frames: core::ops::Range<usize>) {
        for (word, bits) in words_of(frames) {
            self.words[word].fetch_or(bits, AcqRel);
        }
    }

    /// No frame is out of service.
    pub(crate) fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Release));
    }
}
