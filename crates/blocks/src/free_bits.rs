//! Which frames of a pageblock are free: a bit each, in one cache line.

use pageset_core::{Order, PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

use crate::atomic::{AcqRel, Acquire, AtomicUsize, Relaxed, Release, SeqCst, array, constant, fence};
use crate::tail_bits::words_of;

/// Frames in one word.
pub(crate) const WORD_FRAMES: usize = usize::BITS as usize;
/// Frames of a pageblock.
pub(crate) const FRAMES: usize = PAGEBLOCK_FRAMES as usize;
/// Words of a pageblock.
pub(crate) const WORDS: usize = FRAMES / WORD_FRAMES;
/// The order whose blocks are one word.
const WORD_ORDER: usize = usize::BITS.trailing_zeros() as usize;
/// Every frame of a word is free.
pub(crate) const FULL: usize = usize::MAX;

/// The free frames of one pageblock. 64 bytes, in a cache line of their own: what CPUs share of a pageblock is this line.
///
/// A block of an order below that of a word comes and goes by one exchange of its word. Larger blocks take their words one
/// after the other, and put back what they took if one is in use.
#[derive(Debug)]
#[cfg_attr(all(feature = "alloc", not(any(loom, shuttle))), derive(zerocopy::FromZeros))]
#[repr(C, align(64))]
pub struct FreeBits {
    words: [AtomicUsize; WORDS],
    /// In another line, so that all tables have the lines that they have without it.
    #[cfg(feature = "line-counts")]
    pub(crate) last_change: crate::last_change::LastChange,
}

/// Why a block cannot be put back: some or all of its frames are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IsFree;

/// What a free left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Few frames of its word are free.
    Few,
    /// So many that a CPU that needs blocks gets enough of them.
    Many,
    /// All frames of the block's words are free.
    All,
}

impl Left {
    /// What a word says, in which there are blocks of `order`.
    ///
    /// A word is looked at and not the pageblock, since this is asked after every free: where one word has so many, the eight
    /// of a pageblock have two to three dozen if frees come at random.
    #[inline]
    pub(crate) fn of_word(free: usize, order: Order) -> Self {
        /// Single frames that are worth another pageblock.
        const FRAMES: u32 = 6;
        if free == FULL {
            return Self::All;
        }
        let mut rest = free & STARTS[order.index().min(WORD_ORDER)];
        let enough = FRAMES >> order.index().min(2);
        for _ in 1..enough {
            rest &= rest.wrapping_sub(1);
        }
        if rest == 0 { Self::Few } else { Self::Many }
    }
}

impl Default for FreeBits {
    fn default() -> Self {
        Self::new()
    }
}

impl FreeBits {
    constant! {
        /// An entry of a table, to be filled when the allocator is built.
        #[must_use]
        pub fn new() -> Self {
            Self {
                words: array!(AtomicUsize::new(0)),
                #[cfg(feature = "line-counts")]
                last_change: crate::last_change::LastChange::none(),
            }
        }
    }

    /// Takes a free block of `order` below that of pageblocks from `word`, or from the words from there on that a larger
    /// block takes. Returns its first frame, counted in the pageblock.
    ///
    /// A larger block that is not had may have been there in part, and nobody else saw that part meanwhile.
    #[inline]
    pub(crate) fn take(&self, word: usize, order: Order) -> Option<usize> {
        if order.index() <= WORD_ORDER {
            let bit = self.take_in_word(word, order)?;
            Some(word * WORD_FRAMES + bit)
        } else {
            let words = 1 << (order.index() - WORD_ORDER);
            let first = word & !(words - 1);
            self.take_words(first, words).then_some(first * WORD_FRAMES)
        }
    }

    #[inline]
    fn take_in_word(&self, word: usize, order: Order) -> Option<usize> {
        let word = &self.words[word];
        let mut free = word.load(Relaxed);
        loop {
            let bit = lowest_run(free, order)?;
            match word.compare_exchange_weak(free, free & !(run(order) << bit), Acquire, Relaxed) {
                Ok(_) => return Some(bit),
                Err(now) => free = now,
            }
        }
    }

    /// Takes up to `limit` blocks of `order`, at most a word's, by one exchange, the lowest first. Returns a bit for each, at its
    /// first frame.
    #[inline]
    pub(crate) fn take_blocks(&self, word: usize, order: Order, limit: usize) -> usize {
        let word = &self.words[word];
        let mut free = word.load(Relaxed);
        loop {
            let heads = lowest(runs(free, order), limit);
            if heads == 0 {
                return 0;
            }
            match word.compare_exchange_weak(free, free & !frames_of(heads, order), Acquire, Relaxed) {
                Ok(_) => return heads,
                Err(now) => free = now,
            }
        }
    }

    fn take_words(&self, first: usize, words: usize) -> bool {
        for taken in 0..words {
            if self.words[first + taken].compare_exchange(FULL, 0, Acquire, Relaxed).is_err() {
                self.open(first..first + taken);
                return false;
            }
        }
        true
    }

    /// Takes the block that begins at this frame, if all of it is free.
    pub(crate) fn take_at(&self, frame: usize, order: Order) -> bool {
        let word = frame / WORD_FRAMES;
        if order.index() > WORD_ORDER {
            return self.take_words(word, 1 << (order.index() - WORD_ORDER));
        }
        let wanted = run(order) << (frame % WORD_FRAMES);
        let taken = self.words[word]
            .fetch_update(Acquire, Relaxed, |free| (free & wanted == wanted).then_some(free & !wanted));
        taken.is_ok()
    }

    /// Puts a block back. Returns its word as it is then.
    #[inline]
    pub(crate) fn put(&self, frame: usize, order: Order) -> Result<usize, IsFree> {
        let word = frame / WORD_FRAMES;
        if order.index() > WORD_ORDER {
            return self.put_words(word, 1 << (order.index() - WORD_ORDER));
        }
        self.put_frames(word, run(order) << (frame % WORD_FRAMES))
    }

    /// Whether all frames of a block are free.
    pub(crate) fn is_block_free(&self, frame: usize, order: Order) -> bool {
        words_of(frame..frame + order.frames() as usize).all(|(word, bits)| self.word(word) & bits == bits)
    }

    /// Whether a frame of this part is free.
    pub(crate) fn has_any(&self, frames: core::ops::Range<usize>) -> bool {
        words_of(frames).any(|(word, bits)| self.word(word) & bits != 0)
    }

    /// Puts back frames of one word, as bits. Returns the word as it is then.
    ///
    /// In one order with the changes of the pageblock's state, as all that puts frames back: who looks at the state afterwards
    /// sees that it is idle, or who made it idle before sees these frames.
    #[inline]
    pub(crate) fn put_frames(&self, word: usize, frames: usize) -> Result<usize, IsFree> {
        let word = &self.words[word];
        let mut free = word.load(Relaxed);
        loop {
            if free & frames != 0 {
                return Err(IsFree);
            }
            match word.compare_exchange_weak(free, free | frames, SeqCst, Relaxed) {
                Ok(_) => return Ok(free | frames),
                Err(now) => free = now,
            }
        }
    }

    /// Puts back blocks of `order`, at most a word's: a bit for each, at its first frame. Returns the word as it is then. Error if
    /// one is free, or lies where none of this order begins.
    #[inline]
    pub(crate) fn put_blocks(&self, word: usize, order: Order, heads: usize) -> Result<usize, IsFree> {
        if heads & !STARTS[order.index()] != 0 {
            return Err(IsFree);
        }
        self.put_frames(word, frames_of(heads, order))
    }

    /// Only one of two that put the same block back changes its first word; the rest is that one's alone.
    fn put_words(&self, first: usize, words: usize) -> Result<usize, IsFree> {
        self.words[first].compare_exchange(0, FULL, Release, Relaxed).map_err(|_| IsFree)?;
        self.open(first + 1..first + words);
        // The last stores, too, come before what the caller does next.
        fence(SeqCst);
        Ok(FULL)
    }

    /// All frames of these words are free from here on; none of them was.
    pub(crate) fn open(&self, words: core::ops::Range<usize>) {
        self.words[words].iter().for_each(|word| word.store(FULL, Release));
    }

    /// These frames of a word, as bits, are free from here on.
    pub(crate) fn set(&self, word: usize, frames: usize) {
        self.words[word].store(frames, Release);
    }

    /// Takes all frames, if all are free.
    pub(crate) fn close(&self) -> bool {
        self.take_words(0, WORDS)
    }

    /// The free frames, as words of bits. In one order with all that takes and puts back frames: of a CPU that takes a frame and one
    /// that asks for all, one sees what the other did before.
    pub(crate) fn all(&self) -> [usize; WORDS] {
        core::array::from_fn(|word| self.words[word].fetch_or(0, AcqRel))
    }

    /// Takes those of these frames of a word that are free. Returns the word as it was.
    pub(crate) fn take_those(&self, word: usize, frames: usize) -> usize {
        self.words[word].fetch_and(!frames, AcqRel)
    }

    /// The free frames of a word, as bits.
    #[inline]
    pub(crate) fn word(&self, word: usize) -> usize {
        self.words[word].load(Acquire)
    }

    /// Whether this frame is free.
    #[inline]
    pub(crate) fn is_free(&self, frame: usize) -> bool {
        self.word(frame / WORD_FRAMES) >> (frame % WORD_FRAMES) & 1 == 1
    }

    /// Whether all frames are free.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        (0..WORDS).all(|word| self.word(word) == FULL)
    }

    /// How many frames are free.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        (0..WORDS).map(|word| self.word(word).count_ones() as usize).sum()
    }

    /// Whether a CPU that needs blocks of `order` gets enough of them here.
    pub(crate) fn is_worthwhile(&self, order: Order) -> bool {
        if order.index() > WORD_ORDER {
            return self.has(order);
        }
        (0..WORDS).any(|word| Left::of_word(self.word(word), order) != Left::Few)
    }

    /// Whether a block of `order`, below that of pageblocks, is free at a multiple of its size.
    pub(crate) fn has(&self, order: Order) -> bool {
        if order.index() <= WORD_ORDER {
            return (0..WORDS).any(|word| lowest_run(self.word(word), order).is_some());
        }
        let words = 1 << (order.index() - WORD_ORDER);
        (0..WORDS).step_by(words).any(|first| (first..first + words).all(|word| self.word(word) == FULL))
    }
}

/// As many bits as a block of `order`, at most a word's, has frames.
#[inline]
const fn run(order: Order) -> usize {
    RUNS[order.index()]
}

const RUNS: [usize; WORD_ORDER + 1] = by_order(false);
/// A bit at each multiple of a block's size. A table, since it would take a division.
const STARTS: [usize; WORD_ORDER + 1] = by_order(true);

const fn by_order(starts: bool) -> [usize; WORD_ORDER + 1] {
    let mut table = [0; WORD_ORDER + 1];
    let mut order = 0;
    while order <= WORD_ORDER {
        let run = FULL >> (WORD_FRAMES - (1 << order));
        table[order] = if starts { FULL / run } else { run };
        order += 1;
    }
    table
}

/// The lowest multiple of the order's size from which on so many bits are set.
#[inline]
fn lowest_run(free: usize, order: Order) -> Option<usize> {
    if order.index() == 0 {
        return (free != 0).then(|| free.trailing_zeros() as usize);
    }
    let runs = runs(free, order);
    (runs != 0).then(|| runs.trailing_zeros() as usize)
}

/// The multiples of the order's size from which on so many bits are set.
#[inline]
fn runs(free: usize, order: Order) -> usize {
    let mut runs = free;
    for half in 0..order.index() {
        runs &= runs >> (1 << half);
    }
    runs & STARTS[order.index()]
}

/// The lowest bits that are set, at most `limit`.
#[inline]
fn lowest(bits: usize, limit: usize) -> usize {
    if limit >= WORD_FRAMES {
        return bits;
    }
    let mut rest = bits;
    let mut left = limit;
    while rest != 0 && left != 0 {
        rest &= rest - 1;
        left -= 1;
    }
    bits & !rest
}

/// All frames of blocks that are given by their first ones, as far as they lie in the word.
#[inline]
pub(crate) const fn frames_of(heads: usize, order: Order) -> usize {
    // No two blocks have a frame in common, so nothing is carried.
    heads.wrapping_mul(RUNS[if order.index() < WORD_ORDER { order.index() } else { WORD_ORDER }])
}

const _: () = assert!(WORDS.is_power_of_two() && PAGEBLOCK_ORDER > WORD_ORDER);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_few_free_blocks_is_not_worth_another_pageblock() {
        for (o, few, many) in [(0, 5, 6), (1, 2, 3), (2, 0, 1), (3, 0, 1), (6, 0, 1)] {
            let bits = FreeBits::new();
            let blocks = |count: usize| (0..count).fold(0, |word, at| word | run(order(o)) << (at << o));
            bits.set(3, blocks(few));
            assert!(!bits.is_worthwhile(order(o)), "order {o}");
            bits.set(3, blocks(many));
            assert!(bits.is_worthwhile(order(o)), "order {o}");
        }
        assert_eq!(Left::of_word(FULL, Order::ZERO), Left::All);
    }

    fn order(order: u8) -> Order {
        Order::new(order).unwrap()
    }

    fn open() -> FreeBits {
        let bits = FreeBits::new();
        bits.open(0..WORDS);
        bits
    }

    #[test]
    fn every_order_fills_a_pageblock_and_comes_back() {
        for o in 0..PAGEBLOCK_ORDER as u8 {
            let bits = open();
            let mut blocks = std::vec::Vec::new();
            for word in 0..WORDS {
                while let Some(frame) = bits.take(word, order(o)) {
                    assert_eq!(frame % (1 << o), 0);
                    blocks.push(frame);
                }
            }
            assert_eq!(blocks.len(), 512 >> o, "order {o}");
            assert_eq!(bits.count(), 0);
            assert!(!bits.has(order(o)));
            for frame in blocks {
                bits.put(frame, order(o)).unwrap();
                assert_eq!(bits.put(frame, order(o)), Err(IsFree));
            }
            assert!(bits.is_full() && bits.close() && bits.count() == 0);
        }
    }

    #[test]
    fn a_block_that_is_partly_used_is_not_found() {
        for o in 1..PAGEBLOCK_ORDER as u8 {
            let bits = open();
            for frame in (0..512).step_by(1 << o) {
                assert!(bits.take_at(frame + (1 << o) - 1, Order::ZERO));
            }
            assert!(!bits.has(order(o)));
            assert!((0..WORDS).all(|word| bits.take(word, order(o)).is_none()), "order {o}");
            assert!(!bits.take_at(0, order(o)) && !bits.close());
            assert_eq!(bits.count(), 512 - (512 >> o), "nothing is lost by trying");
        }
    }

    #[test]
    fn blocks_come_and_go_many_at_once() {
        for o in 0..=WORD_ORDER as u8 {
            let bits = open();
            let blocks = WORD_FRAMES >> o;
            let one = bits.take_blocks(0, order(o), 1);
            assert_eq!((one, bits.count()), (1, 512 - (1 << o)), "order {o}");
            let rest = bits.take_blocks(0, order(o), 1000);
            assert_eq!((rest.count_ones() as usize, bits.word(0)), (blocks - 1, 0), "order {o}");
            assert_eq!(bits.take_blocks(0, order(o), 1), 0);
            assert!(bits.put_blocks(0, order(o), one | rest).is_ok() && bits.is_full(), "order {o}");
            assert_eq!(bits.put_blocks(0, order(o), one), Err(IsFree));
        }
    }

    #[test]
    fn of_several_blocks_one_that_is_free_or_begins_elsewhere_stops_all() {
        let bits = open();
        assert_eq!(bits.take_blocks(0, order(2), 3), 0b1_0001_0001);
        assert_eq!(bits.put_blocks(0, order(2), 0b1_0001_0000_0001), Err(IsFree));
        assert_eq!(bits.put_blocks(0, order(2), 0b10_0001), Err(IsFree));
        assert_eq!(bits.word(0), FULL << 12, "nothing was put back");
        assert!(bits.take_at(17, Order::ZERO));
        assert_eq!(bits.take_blocks(0, order(2), 2), 1 << 12 | 1 << 20, "not the one that is free in part");
    }
}
