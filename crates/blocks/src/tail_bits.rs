//! Where blocks begin in pageblocks that have blocks of several orders: a bit for each frame that is not a block's first.
//!
//! The bits of free frames say nothing. Frames in use that follow each other, of which the first alone is no tail, are one block. If that
//! could not be one, they are the largest blocks that fit. So whatever the bits are, they say which blocks there are. A wrong free that
//! raced with another one leaves no contradiction, and a block of which a part is freed need not be marked anew.
//!
//! A block that was in use before the pageblock had blocks of several orders is *uncut*: it has the pageblock's own order, and its
//! first frame alone is marked. Nothing else looks so, since a block of two frames or more that has its first frame for a tail
//! has the next one too. Whoever frees it may not know that the pageblock changed, and leave the mark: it says no more than that
//! a block begins here.

use pageset_core::{Order, PAGEBLOCK_FRAMES};

use crate::atomic::{AcqRel, Acquire, AtomicUsize, Release, array, constant};
use crate::free_bits::{WORD_FRAMES, WORDS};

/// The frames of a pageblock that are no block's first. Read and written only in pageblocks with blocks of several orders, or
/// with holes, which are marked so too.
#[derive(Debug)]
#[cfg_attr(all(feature = "alloc", not(any(loom, shuttle))), derive(zerocopy::FromZeros))]
pub struct TailBits {
    words: [AtomicUsize; WORDS],
}

impl Default for TailBits {
    fn default() -> Self {
        Self::new()
    }
}

impl TailBits {
    constant! {
        /// An entry of a table, to be filled when the allocator is built.
        #[must_use]
        pub fn new() -> Self {
            Self { words: array!(AtomicUsize::new(0)) }
        }
    }

    pub(crate) fn is_tail(&self, frame: usize) -> bool {
        self.words[frame / WORD_FRAMES].load(Acquire) >> (frame % WORD_FRAMES) & 1 == 1
    }

    /// Whether an uncut block begins here, or did when it was freed.
    pub(crate) fn is_uncut(&self, frame: usize) -> bool {
        uncut_of(self.words[frame / WORD_FRAMES].load(Acquire)) >> (frame % WORD_FRAMES) & 1 == 1
    }

    /// The frames of a word that are not the first of their block, be it uncut or not, as bits.
    pub(crate) fn going_on(&self, word: usize) -> usize {
        let tails = self.words[word].load(Acquire);
        tails & !uncut_of(tails)
    }

    /// An uncut block of two frames or more begins here.
    pub(crate) fn mark_uncut(&self, frame: usize) {
        self.mark_tails(frame..frame + 1);
    }

    /// A block of this order begins here. What lies behind it must not look as if it were a part of it.
    pub(crate) fn mark_block(&self, frame: usize, order: Order) {
        // At no time does it look as if the block before went on.
        self.mark_head(frame);
        self.mark_tails(frame + 1..frame + order.frames() as usize);
    }

    /// A block begins here. Returns the word as it is then.
    pub(crate) fn mark_head(&self, frame: usize) -> usize {
        let head = 1 << (frame % WORD_FRAMES);
        self.words[frame / WORD_FRAMES].fetch_and(!head, AcqRel) & !head
    }

    /// An uncut block is marked as all others are from here on. At no time is it anything but this one block.
    pub(crate) fn mark_cut(&self, frame: usize, order: Order) {
        let mut words = words_of(frame + 1..frame + order.frames() as usize);
        let Some((first, bits)) = words.next() else { return };
        words.for_each(|(word, bits)| _ = self.words[word].fetch_or(bits, AcqRel));
        let head = 1 << (frame % WORD_FRAMES);
        self.words[first].fetch_update(AcqRel, Acquire, |tails| Some(tails & !head | bits)).ok();
    }

    /// No block begins in these frames.
    pub(crate) fn mark_tails(&self, frames: core::ops::Range<usize>) {
        for (word, bits) in words_of(frames) {
            self.words[word].fetch_or(bits, AcqRel);
        }
    }

    /// These frames are about to be free, and free frames are no tails: a CPU that takes one marks it only afterwards, and
    /// until then it must not look as if it belonged to the block before it.
    pub(crate) fn clear_frames(&self, frames: core::ops::Range<usize>) {
        for (word, bits) in words_of(frames) {
            self.words[word].fetch_and(!bits, AcqRel);
        }
    }

    /// Marks frames that were holes as heads. `false`, and nothing changed, if one was none.
    pub(crate) fn take_holes(&self, word: usize, frames: usize) -> bool {
        let before = self.words[word].fetch_and(!frames, AcqRel);
        if before & frames != frames {
            self.words[word].fetch_or(before & frames, AcqRel);
            return false;
        }
        true
    }

    /// Every frame begins a block, if it is in use.
    pub(crate) fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Release));
    }
}

/// The first frames of the uncut blocks of a word, by its tails.
const fn uncut_of(tails: usize) -> usize {
    // Each frame with an even number.
    const FIRSTS: usize = usize::MAX / 3;
    tails & !(tails >> 1) & FIRSTS
}

/// A range of frames as words and bits in them.
pub(crate) fn words_of(frames: core::ops::Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    debug_assert!(frames.end <= PAGEBLOCK_FRAMES as usize);
    let words =
        if frames.is_empty() { 0..0 } else { frames.start / WORD_FRAMES..frames.end.div_ceil(WORD_FRAMES) };
    words.map(move |word| {
        let first = frames.start.max(word * WORD_FRAMES) - word * WORD_FRAMES;
        let end = frames.end.min((word + 1) * WORD_FRAMES) - word * WORD_FRAMES;
        (word, (usize::MAX >> (WORD_FRAMES - (end - first))) << first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_begin_where_they_were_marked_and_go_on_behind() {
        let tails = TailBits::new();
        let blocks = [(0, 0), (2, 1), (4, 2), (64, 6), (128, 7), (256, 4)];
        for (frame, order) in blocks {
            tails.mark_block(frame, Order::new(order).expect("small"));
        }
        let uncut = [8, 62, 288, 510];
        uncut.into_iter().for_each(|frame| tails.mark_uncut(frame));
        for frame in 0..PAGEBLOCK_FRAMES as usize {
            let is_behind =
                blocks.iter().any(|(head, order)| (head + 1..head + (1 << order)).contains(&frame));
            let goes_on = tails.going_on(frame / WORD_FRAMES) >> (frame % WORD_FRAMES) & 1 == 1;
            assert_eq!(
                (goes_on, tails.is_uncut(frame)),
                (is_behind, uncut.contains(&frame)),
                "frame {frame}"
            );
        }
    }

    #[test]
    fn ranges_become_words() {
        for range in [0..1, 5..5, 60..70, 0..512, 511..512, 63..65, 128..192] {
            let mut frames = std::vec![];
            for (word, bits) in words_of(range.clone()) {
                frames.extend(
                    (0..WORD_FRAMES).filter(|bit| bits >> bit & 1 == 1).map(|bit| word * WORD_FRAMES + bit),
                );
            }
            assert_eq!(frames, range.collect::<std::vec::Vec<_>>());
        }
    }

    #[test]
    fn an_uncut_block_becomes_another_one() {
        let tails = TailBits::new();
        tails.mark_uncut(126);
        assert!(tails.is_uncut(126) && !tails.is_uncut(127) && !tails.is_uncut(128));
        tails.mark_block(126, Order::new(1).unwrap());
        assert!(!tails.is_uncut(126) && !tails.is_tail(126) && tails.is_tail(127));
        tails.mark_uncut(128);
        tails.mark_block(0, Order::new(8).unwrap());
        assert!(!tails.is_uncut(128) && tails.is_tail(128), "it is part of a larger one");
    }

    #[test]
    fn a_block_has_one_head() {
        let tails = TailBits::new();
        tails.mark_block(64, Order::new(7).unwrap());
        assert!(!tails.is_tail(64) && tails.is_tail(65) && tails.is_tail(191) && !tails.is_tail(192));
        tails.mark_head(100);
        assert!(!tails.is_tail(100));
        tails.clear();
        assert!((0..512).all(|frame| !tails.is_tail(frame)));
    }
}
