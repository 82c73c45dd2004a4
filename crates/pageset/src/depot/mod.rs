//! Pageblocks between the arrays and the core: whole, or split into blocks of one order by one bit each.
//!
//! The core's lists keep blocks of all orders, and pay for it with links, merges and a lock for each block. What moves
//! in bulk between arrays and pool needs less: a whole pageblock comes from the core, its parts are bits, and when all
//! bits are set it is whole again. (Measured with a million pages freed at random: 70 ns each through the core's lists.)
//! From the core's view all of these pageblocks are allocated.
//!
//! Each CPU takes from a pageblock of its own as long as that has free blocks. (Measured on two CPUs with all of them
//! taking from the lowest: pages of both lay side by side, and freeing 10 000 of them in random order took three times as
//! long as on one, since bits of the same lines of cache changed on both.)

mod block_set;
mod transfer;

use std::cmp::Reverse;
use std::ops::Range;

use pageset_core::{PAGEBLOCK_FRAMES, PAGEBLOCK_ORDER};

use crate::arrays::{Caps, Class, Entry};
use block_set::BlockSet;
use transfer::Transfer;

/// Words for a pageblock's bits, when it is split into single pages.
const WORDS: usize = PAGEBLOCK_FRAMES as usize / 64;

/// Orders that a pageblock is split into: all classes below it.
const SPLITS: usize = Class::COUNT - 1;

/// The pageblocks between the arrays and the core.
///
/// # Invariants
/// A bit is set only in a pageblock that is split, and `Pageblock::free` counts its bits. `partial` of a class has the
/// pageblocks that are split into it, have a bit and are not reserved. A reserved one has a bit. `whole` has exactly those
/// whose place is `Whole`.
///
/// In lines of cache of its own: whoever waits for the lock looks at it again and again, and would take what is next to it
/// away from whoever has the lock. What every exchange of single pages needs comes first and is one line, since on two CPUs
/// that take turns each line has to come from the other one.
#[repr(C, align(128))]
pub(crate) struct Depot {
    blocks: Box<[Pageblock]>,
    /// Free frames.
    free: u64,
    /// How often arrays were filled and half-emptied from here.
    pub(crate) exchanges: Exchanges,
    transfer: Transfer,
    partial: [BlockSet; SPLITS],
    /// By CPU the pageblock of each class that is reserved for it; wrong unless that pageblock says so too.
    reserved: Box<[[u32; SPLITS]]>,
    /// Pageblocks of which all is free, the next to be used last.
    whole: Vec<u32>,
    /// Fewest whole pageblocks since the last [`release_unused`](Self::release_unused).
    whole_min: usize,
}

/// How often half an array passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exchanges {
    pub(crate) refills: u64,
    pub(crate) flushes: u64,
}

/// One pageblock. In lines of cache of its own, since different CPUs use neighbours at the same time.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Pageblock {
    /// Bit set: this part of the pageblock is free, and here. The first words are used, as many as its class needs.
    bits: [u64; WORDS],
    place: Place,
    /// Whether it is split and only one CPU takes from it.
    is_reserved: bool,
    /// Parts that are free.
    free: u16,
}

/// Where a pageblock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the core, or from there with somebody.
    Elsewhere,
    /// As `Elsewhere`, and its owners have parts of it that the core knows nothing of.
    Dissolved,
    /// From here, all of it with one owner.
    Owned,
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
    /// An empty depot for `frames` frames, used by CPUs below `cpus` that have arrays so large.
    pub(crate) fn new(frames: usize, cpus: usize, caps: Caps) -> Self {
        let blocks = frames / PAGEBLOCK_FRAMES as usize;
        let elsewhere = Pageblock { bits: [0; WORDS], place: Place::Elsewhere, is_reserved: false, free: 0 };
        Self {
            blocks: vec![elsewhere; blocks].into(),
            partial: std::array::from_fn(|_| BlockSet::new(blocks)),
            reserved: vec![[u32::MAX; SPLITS]; cpus.max(1)].into(),
            transfer: Transfer::new(caps),
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
        let lists = size_of_val(&*self.blocks) + size_of_val(&*self.reserved);
        lists + sets + self.transfer.bytes() + self.whole.capacity() * size_of::<u32>()
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
        self.blocks[block as usize].place = Place::Owned;
        Some(block * PAGEBLOCK_FRAMES)
    }

    /// Takes up to `limit` blocks (64 at most) of a class below that of pageblocks for a CPU: from the pageblock that is
    /// reserved for it, lowest first; then from the lowest that has any, which is reserved from now on. `None` if there is
    /// none: add a pageblock.
    pub(crate) fn take(&mut self, cpu: usize, class: Class, limit: u32) -> Option<Parts> {
        let cpu = cpu % self.reserved.len();
        let block = match self.reserved_for(cpu, class) {
            Some(block) => block,
            None => self.reserve(cpu, class)?,
        };
        let pageblock = &mut self.blocks[block as usize];
        let words = &mut pageblock.bits[..words_of(class)];
        let word = words.iter().position(|word| *word != 0)?;
        let (bits, count) = lowest(words[word], limit);
        words[word] &= !bits;
        pageblock.free -= count as u16;
        pageblock.is_reserved = pageblock.free > 0;
        self.free -= u64::from(count << class.shift());
        let first = block * PAGEBLOCK_FRAMES + ((word as u32 * 64) << class.shift());
        Some(Parts { first, bits, count })
    }

    #[inline]
    fn reserved_for(&self, cpu: usize, class: Class) -> Option<u32> {
        let block = self.reserved[cpu][class as usize];
        let pageblock = self.blocks.get(block as usize)?;
        (pageblock.is_reserved && pageblock.place == Place::Split(class)).then_some(block)
    }

    /// Reserves the lowest pageblock of a class for a CPU, or one that is split now.
    fn reserve(&mut self, cpu: usize, class: Class) -> Option<u32> {
        let block = match self.partial[class as usize].lowest() {
            Some(block) => {
                self.partial[class as usize].remove(block);
                block
            }
            None => self.split(class)?,
        };
        self.blocks[block as usize].is_reserved = true;
        self.reserved[cpu][class as usize] = block;
        Some(block)
    }

    /// Reserves nothing for anybody any more: memory is short. Says whether a pageblock of this class was reserved.
    pub(crate) fn share(&mut self, class: Class) -> bool {
        let mut any = false;
        if class == Class::Order9 {
            return any;
        }
        for cpu in 0..self.reserved.len() {
            if let Some(block) = self.reserved_for(cpu, class) {
                self.blocks[block as usize].is_reserved = false;
                self.partial[class as usize].insert(block);
                any = true;
            }
        }
        any
    }

    /// Puts blocks where they are found first, as they are. `false` if there is no room, or for pageblocks.
    #[inline]
    pub(crate) fn pass_on(&mut self, class: Class, entries: &[Entry]) -> bool {
        let is_put = self.transfer.put(class, entries);
        if is_put {
            self.free += (entries.len() as u64) << class.shift();
        }
        is_put
    }

    /// Takes up to `limit` blocks that were passed on, the last first.
    #[inline]
    pub(crate) fn take_passed(&mut self, class: Class, limit: usize, take: impl FnOnce(&[Entry])) {
        let taken = self.transfer.take(class, limit, take);
        self.free -= (taken as u64) << class.shift();
    }

    /// Takes all blocks of a class that were passed on.
    pub(crate) fn empty_passed(&mut self, class: Class) -> Vec<Entry> {
        let all = self.transfer.empty(class);
        self.free -= (all.len() as u64) << class.shift();
        all
    }

    /// Frees a pageblock; `false` if it is free already. `is_owned` is asked about those that are not from here, whose owners
    /// are not known here.
    #[inline]
    pub(crate) fn give_whole(&mut self, first: u32, is_owned: impl FnOnce() -> bool) -> bool {
        let block = first >> PAGEBLOCK_ORDER;
        let may_be_given = match self.blocks.get(block as usize).map(|known| known.place) {
            Some(Place::Owned) => true,
            Some(Place::Elsewhere | Place::Dissolved) => is_owned(),
            Some(Place::Whole | Place::Split(_)) | None => false,
        };
        if may_be_given {
            self.add(first);
        }
        may_be_given
    }

    /// Frees blocks of a class below that of pageblocks.
    #[inline(always)]
    pub(crate) fn give(&mut self, class: Class, parts: Parts) -> Given {
        let Parts { first, bits, mut count } = parts;
        let block = first >> PAGEBLOCK_ORDER;
        let Some(pageblock) = self.blocks.get_mut(block as usize) else { return Given::Foreign };
        match pageblock.place {
            Place::Split(split) if split == class => {}
            Place::Elsewhere | Place::Owned => return Given::Foreign,
            Place::Dissolved => return Given::Part,
            Place::Whole | Place::Split(_) => return Given::Kept { refused: count },
        }
        let word = ((first % PAGEBLOCK_FRAMES) >> class.shift()) / 64;
        let word = &mut pageblock.bits[word as usize];
        let refused = if *word & bits == 0 { 0 } else { (*word & bits).count_ones() };
        count -= refused;
        *word |= bits;
        let before = pageblock.free;
        pageblock.free += count as u16;
        self.free += u64::from(count << class.shift());
        if u32::from(pageblock.free) == PAGEBLOCK_FRAMES >> class.shift() {
            if before > 0 && !pageblock.is_reserved {
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
        self.has_bit(frame) || self.transfer.has(frame)
    }

    /// Whether a frame is in a whole pageblock, or its bit is set.
    fn has_bit(&self, frame: u32) -> bool {
        let block = (frame >> PAGEBLOCK_ORDER) as usize;
        match self.blocks.get(block).map(|pageblock| pageblock.place) {
            Some(Place::Whole) => true,
            Some(Place::Split(class)) => {
                let part = (frame % PAGEBLOCK_FRAMES) >> class.shift();
                self.blocks[block].bits[part as usize / 64] & 1 << (part % 64) != 0
            }
            Some(Place::Elsewhere | Place::Dissolved | Place::Owned) | None => false,
        }
    }

    /// Hands out the whole pageblocks that were not needed since the last call, by their first frames, but keeps `kept`.
    pub(crate) fn release_unused(&mut self, kept: usize, release: impl FnMut(u32)) {
        self.release(self.whole_min.min(self.whole.len().saturating_sub(kept)), release);
        self.whole_min = self.whole.len();
    }

    /// Hands out all whole pageblocks but the `kept` lowest by their first frames. The lowest are resident for certain:
    /// among those that were freed last may be one that was never touched, since half an array was filled from it.
    pub(crate) fn release_whole(&mut self, kept: usize, release: impl FnMut(u32)) {
        let released = self.whole.len().saturating_sub(kept);
        if kept > 0 && released > 0 {
            self.whole.select_nth_unstable_by_key(released, |block| Reverse(*block));
            self.whole[released..].sort_unstable_by_key(|block| Reverse(*block));
        }
        self.release(self.whole.len().saturating_sub(kept), release);
        self.whole_min = self.whole.len();
    }

    /// Frames of whole pageblocks.
    pub(crate) fn whole_frames(&self) -> u64 {
        self.whole.len() as u64 * u64::from(PAGEBLOCK_FRAMES)
    }

    /// Hands out the `count` whole pageblocks that came first.
    fn release(&mut self, count: usize, mut release: impl FnMut(u32)) {
        for block in self.whole.drain(..count) {
            self.free -= u64::from(PAGEBLOCK_FRAMES);
            self.blocks[block as usize].place = Place::Elsewhere;
            release(block * PAGEBLOCK_FRAMES);
        }
    }

    /// Gives up the pageblock with this frame: from now on the core knows who has it. If it is split, `free_range` gets its
    /// free frames.
    pub(crate) fn dissolve(&mut self, frame: u32, mut free_range: impl FnMut(Range<u32>)) {
        let block = frame >> PAGEBLOCK_ORDER;
        let Some(Pageblock { place, is_reserved, free, .. }) = self.blocks.get(block as usize).copied()
        else {
            return;
        };
        if place == Place::Owned {
            self.blocks[block as usize].place = Place::Elsewhere;
        }
        let Place::Split(class) = place else { return };
        let end = (block + 1) * PAGEBLOCK_FRAMES;
        let mut frame = block * PAGEBLOCK_FRAMES;
        while frame < end {
            let start = frame;
            while frame < end && self.has_bit(frame) {
                frame += class.frames();
            }
            if frame > start {
                free_range(start..frame);
            }
            frame += class.frames();
        }
        if !is_reserved {
            self.partial[class as usize].remove(block);
        }
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

    /// Makes a whole pageblock one of blocks of `class`, to be reserved.
    fn split(&mut self, class: Class) -> Option<u32> {
        let block = self.take_whole()? >> PAGEBLOCK_ORDER;
        let parts = PAGEBLOCK_FRAMES >> class.shift();
        self.free += u64::from(PAGEBLOCK_FRAMES);
        let pageblock = &mut self.blocks[block as usize];
        pageblock.bits[..words_of(class)].fill(u64::MAX);
        pageblock.place = Place::Split(class);
        pageblock.free = parts as u16;
        Some(block)
    }

    fn keep_whole(&mut self, block: u32) {
        self.blocks[block as usize].place = Place::Whole;
        self.whole.push(block);
    }

    /// Forgets the bits of a split pageblock.
    fn clear(&mut self, block: u32, class: Class) {
        let pageblock = &mut self.blocks[block as usize];
        pageblock.bits[..words_of(class)].fill(0);
        pageblock.free = 0;
        pageblock.is_reserved = false;
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
        let mut depot = Depot::new(8192, 2, Caps::for_pool(8192, 2));
        pageblocks.iter().for_each(|block| depot.add(block * 512));
        depot
    }

    #[test]
    fn single_pages_come_and_go_and_the_last_one_makes_the_pageblock_whole() {
        let mut depot = depot(&[1]);
        assert_eq!(depot.take(0, Class::Order0, 3), Some(Parts { first: 512, bits: 0b111, count: 3 }));
        assert_eq!(
            depot.take(0, Class::Order0, 64),
            Some(Parts { first: 512, bits: u64::MAX << 3, count: 61 })
        );
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
        assert_eq!((depot.free(), depot.take(0, Class::Order0, 1)), (0, None));
    }

    #[test]
    fn many_pages_are_given_at_once() {
        let mut depot = depot(&[0]);
        while depot.take(0, Class::Order0, 64).is_some() {}
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
        assert_eq!(depot.take(0, Class::Order3, 64), Some(Parts { first: 1536, bits: u64::MAX, count: 64 }));
        assert_eq!(depot.take(0, Class::Order0, 2), Some(Parts { first: 1024, bits: 0b11, count: 2 }));
        assert_eq!(depot.take(0, Class::Order3, 1), None);
        assert_eq!(give(&mut depot, 1544, Class::Order3), KEPT);
        assert!(is_refused(&mut depot, 1560, Class::Order2), "no block of this order");
        assert!(depot.has(1551) && !depot.has(1552));
        assert_eq!(depot.take(0, Class::Order3, 9), Some(Parts { first: 1536, bits: 0b10, count: 1 }));
        assert_eq!(depot.free(), 510);
    }

    #[test]
    fn the_lowest_pageblock_is_used_up_first() {
        let mut depot = depot(&[5, 1, 3]);
        let mut all = Vec::new();
        while let Some(taken) = depot.take(0, Class::Order3, 64) {
            all.push(taken.first);
        }
        for first in all {
            assert_eq!(give(&mut depot, first + 8, Class::Order3), KEPT);
        }
        let firsts: Vec<_> =
            std::iter::from_fn(|| depot.take(0, Class::Order3, 64)).map(|taken| taken.first).collect();
        assert_eq!(firsts, [512, 1536, 2560]);
    }

    #[test]
    fn dissolved_pageblocks_leave_their_free_frames() {
        let mut depot = depot(&[0, 2]);
        assert_eq!(depot.take(0, Class::Order1, 64), Some(Parts { first: 1024, bits: u64::MAX, count: 64 }));
        assert_eq!(give(&mut depot, 1030, Class::Order1), KEPT);
        let mut ranges = Vec::new();
        depot.dissolve_all(|range| ranges.push(range));
        assert_eq!(ranges, [1030..1032, 1152..1536]);
        assert_eq!((depot.free(), give(&mut depot, 1034, Class::Order1)), (512, Given::Part));
        let mut whole = Vec::new();
        depot.release_whole(0, |first| whole.push(first));
        assert_eq!((depot.free(), whole), (0, vec![0]));
    }

    #[test]
    fn pageblocks_that_nobody_needed_are_released() {
        let mut depot = depot(&[0, 1, 2, 3]);
        let released = |depot: &mut Depot| {
            let mut released = Vec::new();
            depot.release_unused(0, |first| released.push(first / 512));
            released
        };
        assert_eq!(released(&mut depot), [], "nobody had the time to need them");
        for _ in 0..2 {
            let taken = depot.take_whole().unwrap();
            assert!(depot.give_whole(taken, || false) && !depot.give_whole(taken, || true));
        }
        assert_eq!(released(&mut depot), [0, 1, 2]);
        assert_eq!(released(&mut depot), [3]);
        assert_eq!(depot.free(), 0);
    }

    #[test]
    fn the_lowest_pageblocks_are_kept() {
        let mut depot = depot(&[5, 7, 1, 3]);
        let mut released = Vec::new();
        depot.release_unused(3, |first| released.push(first / 512));
        assert_eq!(released, [], "nobody had the time to need them");
        depot.release_unused(3, |first| released.push(first / 512));
        depot.release_whole(2, |first| released.push(first / 512));
        assert_eq!((released, depot.whole_frames()), (vec![5, 7], 1024));
        assert_eq!((depot.take_whole(), depot.take_whole()), (Some(512), Some(3 * 512)));
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
                let Some(taken) = depot.take(0, class, limit) else { continue };
                assert!((1..=limit).contains(&taken.count) && taken.count == taken.bits.count_ones());
                held.extend(taken.frames(class).map(|frame| (frame, class)));
            } else {
                for _ in 0..below(100).min(held.len()) {
                    let (frame, class) = held.swap_remove(below(held.len()));
                    if class == Class::Order9 {
                        assert!(depot.give_whole(frame, || false) && !depot.give_whole(frame, || true));
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
