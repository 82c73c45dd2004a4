//! Memory for the contents of frames, so that clearing and copying frames takes real time.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use pageset_core::Pfn;
use zerocopy::FromZeros as _;

use crate::slab::PAGE_BYTES;
use crate::target::Access;

/// Number of words of 8 bytes in a page.
const PAGE_WORDS: u64 = PAGE_BYTES as u64 / 8;
/// Number of words of 8 bytes in a cache line.
const LINE_WORDS: usize = 8;

/// The contents of all frames. The words are atomics, so that a faulty workload that touches another worker's
/// memory causes no undefined behaviour.
#[derive(Debug)]
pub(super) struct Memory(Vec<AtomicU64>);

impl Memory {
    /// Allocates zeroed memory for the contents of the frames 0 to `pages`, both included. The operating
    /// system provides memory only for touched pages. If the allocation fails, frames have no contents, and
    /// touching them takes no time.
    pub(super) fn new(pages: u64) -> Self {
        let words =
            pages.saturating_add(1).checked_mul(PAGE_WORDS).and_then(|words| usize::try_from(words).ok());
        Self(words.and_then(|words| AtomicU64::new_vec_zeroed(words).ok()).unwrap_or_default())
    }

    pub(super) fn clear(&self, pfn: Pfn, bytes: u64) {
        self.words(pfn, bytes).iter().for_each(|word| word.store(0, Relaxed));
    }

    pub(super) fn touch(&self, pfn: Pfn, bytes: u64, access: Access) {
        let words = self.words(pfn, bytes);
        match access {
            Access::Read => {
                let lines = words.iter().step_by(LINE_WORDS);
                black_box(lines.fold(0, |sum: u64, word| sum.wrapping_add(word.load(Relaxed))));
            }
            Access::Write => words.iter().step_by(LINE_WORDS).for_each(|word| word.store(1, Relaxed)),
            Access::Copy => {
                words
                    .iter()
                    .for_each(|word| word.store(black_box(word.load(Relaxed)).wrapping_add(1), Relaxed));
            }
        }
    }

    fn words(&self, pfn: Pfn, bytes: u64) -> &[AtomicU64] {
        let start = pfn.0.saturating_mul(PAGE_WORDS);
        let end = start.saturating_add(bytes.div_ceil(8));
        let index = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
        self.0.get(index(start)..index(end)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_given_bytes_are_written() {
        let memory = Memory::new(3);
        memory.touch(Pfn(1), 4096, Access::Write);
        memory.clear(Pfn(1), 64);
        assert_eq!(memory.0[PAGE_WORDS as usize].load(Relaxed), 0);
        assert_eq!(memory.0[PAGE_WORDS as usize + LINE_WORDS].load(Relaxed), 1);
        assert_eq!(memory.0[2 * PAGE_WORDS as usize].load(Relaxed), 0);
        memory.touch(Pfn(u64::MAX), u64::MAX, Access::Copy);
    }
}
