//! Fills pages with a pattern that only their owner knows.

use pageset::{PAGE_BYTES, Pages};

/// Words of a page.
const WORDS: usize = PAGE_BYTES / 8;
/// The number of pages of a block that the test fills with a pattern. Writing whole large blocks would take
/// most of the test's time.
const WRITTEN: usize = 16;

/// The pattern of some pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    seed: u64,
    /// Frames whose number is a multiple of `stride` have the pattern.
    stride: usize,
}

/// Pages with their owner's pattern.
#[derive(Debug)]
pub(super) struct Owned<'p> {
    pub(super) pages: Pages<'p>,
    pub(super) pattern: Pattern,
}

impl Pattern {
    /// The word that the pattern writes to a page.
    fn word(self, frame: usize) -> u64 {
        (self.seed ^ frame as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }

    /// The places of the word in a page: both ends, and one place between the ends.
    fn places(self) -> [usize; 3] {
        [0, self.seed as usize % WORDS, WORDS - 1]
    }

    /// Fails if the pages in `bytes`, which begin with frame `first`, do not have the pattern any more.
    #[track_caller]
    pub(super) fn check(self, first: usize, bytes: &[u8]) {
        for (frame, page) in (first..).zip(bytes.chunks_exact(PAGE_BYTES)) {
            if frame.is_multiple_of(self.stride) {
                let word = self.word(frame).to_ne_bytes();
                let is_right = |place: usize| page[place * 8..][..8] == word;
                assert!(self.places().into_iter().all(is_right), "frame {frame} was changed: {self:?}");
            }
        }
    }
}

impl<'p> Owned<'p> {
    /// Writes a pattern.
    pub(super) fn take(mut pages: Pages<'p>, seed: u64) -> Self {
        let first = pages.pfn().0 as usize;
        let pattern = Pattern { seed, stride: (pages.page_count() / WRITTEN).max(1) };
        for (frame, page) in (first..).zip(pages.chunks_exact_mut(PAGE_BYTES)) {
            if frame.is_multiple_of(pattern.stride) {
                let word = pattern.word(frame).to_ne_bytes();
                pattern.places().into_iter().for_each(|place| page[place * 8..][..8].copy_from_slice(&word));
            }
        }
        Self { pages, pattern }
    }

    pub(super) fn first(&self) -> usize {
        self.pages.pfn().0 as usize
    }

    pub(super) fn count(&self) -> usize {
        self.pages.page_count()
    }

    #[track_caller]
    pub(super) fn check(&self) {
        self.pattern.check(self.first(), &self.pages);
    }
}

/// Fails if one of the given pages is not zero. Checks all pages of a small block, and some pages of a large
/// block.
#[track_caller]
pub(super) fn check_zero(pages: &Pages<'_>, seed: u64) {
    let stride = pages.page_count() / WRITTEN + 1;
    let first = seed as usize % stride;
    for page in pages.chunks_exact(PAGE_BYTES).skip(first).step_by(stride) {
        assert!(page.iter().all(|byte| *byte == 0), "{pages:?} are not zero");
    }
}
