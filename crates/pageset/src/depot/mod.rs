//! Pageblocks between the arrays and the core: whole, or split into blocks of one order by one bit each.
//!
//! The core's lists keep blocks of all orders, and pay for it with links, merges and a lock for each block. What moves
//! in bulk between arrays and pool needs less: a whole pageblock comes from the core, its parts are bits, and when all
//! bits are set it is whole again. (Measured with a million pages freed at random: 70 ns each through the core's lists.)
//! From the core's view all of these pageblocks are allocated.

mod block_set;

use std::ops::Range;

use pageset_core::{PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

use crate::arrays::Class;
use block_set::BlockSet;

/// Words for a pageblock's bits, when it is split into single pages.
const WORDS: usize = PAGEBLOCK_FRAMES as usize / 64;

/// Orders that a pageblock is split into: all classes below it.
const SPLITS: usize = Class::COUNT - 1;

/// The pageblocks between the arrays and the core.
///
/// # Invariants
/// A bit is set only in a pageblock that is split, and `Pageblock::free` counts its bits. `partial` of a class has the
/// pageblocks that are split into it and have a bit. `whole` has exactly those whose place is `Whole`.
pub(crate) struct Depot {
    /// Bit set: this part of the pageblock is free, and here. [`WORDS`] for each pageblock, the first of which are used.
    bits: Box<[u64]>,
    blocks: Box<[Pageblock]>,
    partial: [BlockSet; SPLITS],
    /// Pageblocks of which all is free, the next to be used last.
    whole: Vec<u32>,
    /// Fewest whole pageblocks since the last [`release_unused`](Self::release_unused).
    whole_min: usize,
    /// Free frames.
    free: u64,
    /// How often arrays were filled and half-emptied from here.
    pub(crate) exchanges: Exchanges,
}

/// How often half an array passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exchanges {
    pub(crate) refills: u64,
    pub(crate) flushes: u64,
}

/// One pageblock.
#[derive(Clone, Copy)]
struct Pageblock {
    place: Place,
    /// Parts that are free.
    free: u16,
}

/// Where a pageblock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the core, or all of it with one owner.
    Elsewhere,
    /// As `Elsewhere`, and its owners have parts of it that the core knows nothing of.
    Dissolved,
    /// Here, all of it free.
    Whole,
    /// Here, in blocks of this class.
    Split(Class),
}

/// Blocks of a class that lie in one word: bit `n` is the block `n` times the class's size behind `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The frame that bit 0 stands for, a multiple of 64 blocks (or the first of a pageblock).
    pub(crate) first: u32,
    pub(crate) bits: u64,
    /// How many bits are set: known to whoever sets them, and slow to count on processors of 2003.
    pub(crate) count: u32,
}

impl Parts {
    /// One block.
    #[inline(always)]
    pub(crate) fn one(frame: u32, class: Class) -> Self {
        let part = (frame >> class.shift()) % 64;
        Self { first: frame - (part << class.shift()), bits: 1 << part, count: 1 }
    }

    /// Adds a block, if it lies in the same word and is not one of these; `false` if not.
    #[inline(always)]
    pub(crate) fn add(&mut self, frame: u32, class: Class) -> bool {
        let next = Self::one(frame, class);
        let belongs = next.first == self.first && next.bits & self.bits == 0;
        if belongs {
            self.bits |= next.bits;
            self.count += 1;
        }
        belongs
    }

    /// The frames that the blocks begin with, lowest first.
    pub(crate) fn frames(self, class: Class) -> impl Iterator<Item = u32> {
        let mut rest = self.bits;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros();
            rest &= rest.checked_sub(1)?;
            Some(self.first + (bit << class.shift()))
        })
    }
}

/// What became of blocks that were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// They are free; so many were before, or are none.
    Kept { refused: u32 },
    /// They are no blocks of a pageblock that is split here: free them in the core.
    Foreign,
    /// As `Foreign`, and the core may know them as parts of larger blocks.
    Part,
}

impl Depot {
    pub(crate) fn new(frames: usize) -> Self {
        let blocks = frames / PAGEBLOCK_FRAMES as usize;
        Self {
            bits: vec![0; blocks * WORDS].into(),
            blocks: vec![Pageblock { place: Place::Elsewhere, free: 0 }; blocks].into(),
            partial: std::array::from_fn(|_| BlockSet::new(blocks)),
            whole: Vec::new(),
            whole_min: 0,
            free: 0,
            exchanges: Exchanges::default(),
        }
    }

    /// Free frames.
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    pub(crate) fn bytes(&self) -> usize {
        let sets: usize = self.partial.iter().map(BlockSet::bytes).sum();
        let lists = size_of_val(&*self.bits) + size_of_val(&*self.blocks);
        lists + sets + self.whole.capacity() * size_of::<u32>()
    }

    /// Adds a pageblock by its first frame, all of it free.
    pub(crate) fn add(&mut self, first: u32) {
        self.free += u64::from(PAGEBLOCK_FRAMES);
        self.keep_whole(first >> PAGEBLOCK_ORDER);
    }

    /// Takes a pageblock: its first frame.
    #[inline]
    pub(crate) fn take_whole(&mut self) -> Option<u32> {
        let block = self.whole.pop()?;
        self.whole_min = self.whole_min.min(self.whole.len());
        self.free -= u64::from(PAGEBLOCK_FRAMES);
        self.blocks[block as usize].place = Place::Elsewhere;
        Some(block * PAGEBLOCK_FRAMES)
    }

    /// Takes up to `limit` blocks (64 at most) of a class below that of pageblocks, lowest first. `None` if there is none:
    /// add a pageblock.
    pub(crate) fn take(&mut self, class: Class, limit: u32) -> Option<Parts> {
        let block = match self.partial[class as usize].lowest() {
            Some(block) => block,
            None => self.split(class)?,
        };
        let words = &mut self.bits[block as usize * WORDS..][..words_of(class)];
        let word = words.iter().position(|word| *word != 0)?;
        let (bits, count) = lowest(words[word], limit);
        words[word] &= !bits;
        let pageblock = &mut self.blocks[block as usize];
        pageblock.free -= count as u16;
        if pageblock.free == 0 {
            self.partial[class as usize].remove(block);
        }
        self.free -= u64::from(count << class.shift());
        let first = block * PAGEBLOCK_FRAMES + ((word as u32 * 64) << class.shift());
        Some(Parts { first, bits, count })
    }

    /// Frees a pageblock; `false` if it is free already. Ask the core before whether it has an owner: that is not known
    /// here.
    #[inline]
    pub(crate) fn give_whole(&mut self, first: u32) -> bool {
        let block = first >> PAGEBLOCK_ORDER;
        let known = self.blocks.get(block as usize);
        let is_free = known.is_some_and(|known| matches!(known.place, Place::Elsewhere | Place::Dissolved));
        if is_free {
            self.add(first);
        }
        is_free
    }

    /// Frees blocks of a class below that of pageblocks.
    #[inline(always)]
    pub(crate) fn give(&mut self, class: Class, parts: Parts) -> Given {
        let Parts { first, bits, mut count } = parts;
        let block = first >> PAGEBLOCK_ORDER;
        let Some(pageblock) = self.blocks.get_mut(block as usize) else { return Given::Foreign };
        match pageblock.place {
            Place::Split(split) if split == class => {}
            Place::Elsewhere => return Given::Foreign,
            Place::Dissolved => return Given::Part,
            Place::Whole | Place::Split(_) => return Given::Kept { refused: count },
        }
        let word = ((first % PAGEBLOCK_FRAMES) >> class.shift()) / 64;
        let word = &mut self.bits[block as usize * WORDS + word as usize];
        let refused = if *word & bits == 0 { 0 } else { (*word & bits).count_ones() };
        count -= refused;
        *word |= bits;
        let before = pageblock.free;
        pageblock.free += count as u16;
        self.free += u64::from(count << class.shift());
        if u32::from(pageblock.free) == PAGEBLOCK_FRAMES >> class.shift() {
            if before > 0 {
                self.partial[class as usize].remove(block);
            }
            self.clear(block, class);
            self.keep_whole(block);
        } else if before == 0 {
            self.partial[class as usize].insert(block);
        }
        Given::Kept { refused }
    }

    /// Whether a frame is free here.
    pub(crate) fn has(&self, frame: u32) -> bool {
        let block = (frame >> PAGEBLOCK_ORDER) as usize;
        match self.blocks.get(block).map(|pageblock| pageblock.place) {
            Some(Place::Whole) => true,
            Some(Place::Split(class)) => {
                let part = (frame % PAGEBLOCK_FRAMES) >> class.shift();
                self.bits[block * WORDS + part as usize / 64] & 1 << (part % 64) != 0
            }
            Some(Place::Elsewhere | Place::Dissolved) | None => false,
        }
    }

    /// Hands out the whole pageblocks that were not needed since the last call, by their first frames.
    pub(crate) fn release_unused(&mut self, release: impl FnMut(u32)) {
        self.release(self.whole_min, release);
        self.whole_min = self.whole.len();
    }

    /// Hands out all whole pageblocks by their first frames.
    pub(crate) fn release_whole(&mut self, release: impl FnMut(u32)) {
        self.release(self.whole.len(), release);
        self.whole_min = 0;
    }

    /// Hands out the `count` whole pageblocks that came first.
    fn release(&mut self, count: usize, mut release: impl FnMut(u32)) {
        for block in self.whole.drain(..count) {
            self.free -= u64::from(PAGEBLOCK_FRAMES);
            self.blocks[block as usize].place = Place::Elsewhere;
            release(block * PAGEBLOCK_FRAMES);
        }
    }

    /// Gives up the pageblock with this frame, if it is split: `free_range` gets its free frames.
    pub(crate) fn dissolve(&mut self, frame: u32, mut free_range: impl FnMut(Range<u32>)) {
        let block = frame >> PAGEBLOCK_ORDER;
        let Some(Pageblock { place: Place::Split(class), free }) = self.blocks.get(block as usize).copied()
        else {
            return;
        };
        let end = (block + 1) * PAGEBLOCK_FRAMES;
        let mut frame = block * PAGEBLOCK_FRAMES;
        while frame < end {
            let start = frame;
            while frame < end && self.has(frame) {
                frame += class.frames();
            }
            if frame > start {
                free_range(start..frame);
            }
            frame += class.frames();
        }
        self.partial[class as usize].remove(block);
        self.clear(block, class);
        self.free -= u64::from(u32::from(free) * class.frames());
        self.blocks[block as usize].place = Place::Dissolved;
    }

    /// Gives up every pageblock that is split.
    pub(crate) fn dissolve_all(&mut self, mut free_range: impl FnMut(Range<u32>)) {
        for block in 0..self.blocks.len() as u32 {
            self.dissolve(block * PAGEBLOCK_FRAMES, &mut free_range);
        }
    }

    /// Makes a whole pageblock one of blocks of `class`.
    fn split(&mut self, class: Class) -> Option<u32> {
        let block = self.take_whole()? >> PAGEBLOCK_ORDER;
        let parts = PAGEBLOCK_FRAMES >> class.shift();
        self.free += u64::from(PAGEBLOCK_FRAMES);
        self.bits[block as usize * WORDS..][..words_of(class)].fill(u64::MAX);
        self.blocks[block as usize] = Pageblock { place: Place::Split(class), free: parts as u16 };
        self.partial[class as usize].insert(block);
        Some(block)
    }

    fn keep_whole(&mut self, block: u32) {
        self.blocks[block as usize].place = Place::Whole;
        self.whole.push(block);
    }

    /// Forgets the bits of a split pageblock.
    fn clear(&mut self, block: u32, class: Class) {
        self.bits[block as usize * WORDS..][..words_of(class)].fill(0);
        self.blocks[block as usize].free = 0;
    }
}

/// Words that hold the bits of a pageblock that is split into this class.
fn words_of(class: Class) -> usize {
    (PAGEBLOCK_FRAMES >> class.shift()).div_ceil(64) as usize
}

/// The lowest `limit` bits that are set, or all, and how many these are.
fn lowest(bits: u64, limit: u32) -> (u64, u32) {
    let start = bits.trailing_zeros();
    let run = (bits >> start).trailing_ones();
    if run >= limit {
        return ((u64::MAX >> (64 - limit)) << start, limit);
    }
    let (mut rest, mut count) = (bits, 0);
    while rest != 0 && count < limit {
        rest &= rest - 1;
        count += 1;
    }
    (bits & !rest, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Given = Given::Kept { refused: 0 };

    fn give(depot: &mut Depot, frame: u32, class: Class) -> Given {
        depot.give(class, Parts::one(frame, class))
    }

    fn is_refused(depot: &mut Depot, frame: u32, class: Class) -> bool {
        give(depot, frame, class) == Given::Kept { refused: 1 }
    }

    fn depot(pageblocks: &[u32]) -> Depot {
        let mut depot = Depot::new(8192);
        pageblocks.iter().for_each(|block| depot.add(block * 512));
        depot
    }

    #[test]
    fn single_pages_come_and_go_and_the_last_one_makes_the_pageblock_whole() {
        let mut depot = depot(&[1]);
        assert_eq!(depot.take(Class::Order0, 3), Some(Parts { first: 512, bits: 0b111, count: 3 }));
        assert_eq!(depot.take(Class::Order0, 64), Some(Parts { first: 512, bits: u64::MAX << 3, count: 61 }));
        assert_eq!(depot.free(), 448);
        assert_eq!(give(&mut depot, 513, Class::Order0), KEPT);
        assert!(is_refused(&mut depot, 513, Class::Order0));
        assert_eq!(give(&mut depot, 5, Class::Order0), Given::Foreign);
        assert!(depot.has(513) && !depot.has(512));
        assert_eq!(depot.take_whole(), None, "it is split");
        for frame in (512..576).filter(|frame| *frame != 513) {
            assert_eq!(give(&mut depot, frame, Class::Order0), KEPT);
        }
        assert!(is_refused(&mut depot, 513, Class::Order0));
        assert_eq!(depot.take_whole(), Some(512));
        assert_eq!((depot.free(), depot.take(Class::Order0, 1)), (0, None));
    }

    #[test]
    fn many_pages_are_given_at_once() {
        let mut depot = depot(&[0]);
        while depot.take(Class::Order0, 64).is_some() {}
        for word in 0..8 {
            assert_eq!(depot.give(Class::Order0, Parts { first: word * 64, bits: !1, count: 63 }), KEPT);
        }
        let again = Parts { first: 64, bits: 0b11, count: 2 };
        assert_eq!(depot.give(Class::Order0, again), Given::Kept { refused: 1 });
        assert_eq!(again.frames(Class::Order0).collect::<Vec<_>>(), [64, 65]);
        assert_eq!(depot.free(), 505);
    }

    #[test]
    fn each_order_has_pageblocks_of_its_own() {
        let mut depot = depot(&[2, 3]);
        assert_eq!(depot.take(Class::Order3, 64), Some(Parts { first: 1536, bits: u64::MAX, count: 64 }));
        assert_eq!(depot.take(Class::Order0, 2), Some(Parts { first: 1024, bits: 0b11, count: 2 }));
        assert_eq!(depot.take(Class::Order3, 1), None);
        assert_eq!(give(&mut depot, 1544, Class::Order3), KEPT);
        assert!(is_refused(&mut depot, 1560, Class::Order2), "no block of this order");
        assert!(depot.has(1551) && !depot.has(1552));
        assert_eq!(depot.take(Class::Order3, 9), Some(Parts { first: 1536, bits: 0b10, count: 1 }));
        assert_eq!(depot.free(), 510);
    }

    #[test]
    fn the_lowest_pageblock_is_used_up_first() {
        let mut depot = depot(&[5, 1, 3]);
        let mut all = Vec::new();
        while let Some(taken) = depot.take(Class::Order3, 64) {
            all.push(taken.first);
        }
        for first in all {
            assert_eq!(give(&mut depot, first + 8, Class::Order3), KEPT);
        }
        let firsts: Vec<_> =
            std::iter::from_fn(|| depot.take(Class::Order3, 64)).map(|taken| taken.first).collect();
        assert_eq!(firsts, [512, 1536, 2560]);
    }

    #[test]
    fn dissolved_pageblocks_leave_their_free_frames() {
        let mut depot = depot(&[0, 2]);
        assert_eq!(depot.take(Class::Order1, 64), Some(Parts { first: 1024, bits: u64::MAX, count: 64 }));
        assert_eq!(give(&mut depot, 1030, Class::Order1), KEPT);
        let mut ranges = Vec::new();
        depot.dissolve_all(|range| ranges.push(range));
        assert_eq!(ranges, [1030..1032, 1152..1536]);
        assert_eq!((depot.free(), give(&mut depot, 1034, Class::Order1)), (512, Given::Part));
        let mut whole = Vec::new();
        depot.release_whole(|first| whole.push(first));
        assert_eq!((depot.free(), whole), (0, vec![0]));
    }

    #[test]
    fn pageblocks_that_nobody_needed_are_released() {
        let mut depot = depot(&[0, 1, 2, 3]);
        let released = |depot: &mut Depot| {
            let mut released = Vec::new();
            depot.release_unused(|first| released.push(first / 512));
            released
        };
        assert_eq!(released(&mut depot), [], "nobody had the time to need them");
        for _ in 0..2 {
            let taken = depot.take_whole().unwrap();
            assert!(depot.give_whole(taken) && !depot.give_whole(taken));
        }
        assert_eq!(released(&mut depot), [0, 1, 2]);
        assert_eq!(released(&mut depot), [3]);
        assert_eq!(depot.free(), 0);
    }

    /// Random takes and gives against a set of what is free.
    #[test]
    fn nothing_is_lost_or_doubled() {
        let mut depot = depot(&(0..16).collect::<Vec<_>>());
        let mut held: Vec<(u32, Class)> = Vec::new();
        let mut random = 3_u64;
        let mut below = |limit: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) % limit as u64) as usize
        };
        for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
            if below(2) == 0 {
                let class = Class::ALL[below(Class::COUNT)];
                let limit = 1 + below(64) as u32;
                if class == Class::Order9 {
                    held.extend(depot.take_whole().map(|frame| (frame, class)));
                    continue;
                }
                let Some(taken) = depot.take(class, limit) else { continue };
                assert!((1..=limit).contains(&taken.count) && taken.count == taken.bits.count_ones());
                held.extend(taken.frames(class).map(|frame| (frame, class)));
            } else {
                for _ in 0..below(100).min(held.len()) {
                    let (frame, class) = held.swap_remove(below(held.len()));
                    if class == Class::Order9 {
                        assert!(depot.give_whole(frame) && !depot.give_whole(frame));
                        continue;
                    }
                    assert_eq!(give(&mut depot, frame, class), KEPT);
                    assert!(is_refused(&mut depot, frame, class));
                }
            }
            let out: u32 = held.iter().map(|(_, class)| class.frames()).sum();
            assert_eq!(depot.free() + u64::from(out), 8192);
        }
        let mut frames: Vec<_> =
            held.iter().flat_map(|(frame, class)| *frame..frame + class.frames()).collect();
        frames.extend((0..8192).filter(|frame| depot.has(*frame)));
        frames.sort_unstable();
        assert!(frames.into_iter().eq(0..8192));
    }
}
