//! One pageblock: where it is, and a bit for each of its parts.

use pageset_core::PAGEBLOCK_FRAMES;

use super::parts::Parts;
use crate::arrays::Class;

/// Words for a pageblock's bits, when it is split into single pages.
const WORDS: usize = PAGEBLOCK_FRAMES as usize / 64;

/// Bit set: this part of the pageblock is free, and here. The first words are used, as many as its class needs. A line of
/// cache, apart from the rest of the pageblock: together they would take two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Bits([u64; WORDS]);

impl Bits {
    pub(super) const NONE: Self = Self([0; WORDS]);

    /// Whether any part is free.
    pub(super) fn has_any(&self) -> bool {
        self.0.iter().any(|word| *word != 0)
    }

    /// Words of which a part is free.
    pub(super) fn words_with_any(&self) -> usize {
        self.0.iter().filter(|word| **word != 0).count()
    }

    /// Whether all parts of a pageblock that is split into this class are free.
    pub(super) fn has_all(&self, class: Class) -> bool {
        self.0[..words_of(class)].iter().all(|word| *word == u64::MAX)
    }

    /// Parts that are free. Slow.
    pub(super) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Takes up to `limit` blocks (64 at most) of the class that pageblock `block` is split into, the lowest. `None` if there is none.
    #[inline]
    pub(super) fn take(&mut self, block: u32, class: Class, limit: u32) -> Option<Parts> {
        let words = &mut self.0[..words_of(class)];
        let word = words.iter().position(|word| *word != 0)?;
        let (bits, count) = lowest(words[word], limit);
        words[word] &= !bits;
        let first = block * PAGEBLOCK_FRAMES + ((word as u32 * 64) << class.shift());
        Some(Parts { first, bits, count })
    }

    /// Puts blocks of the class that the pageblock is split into. Returns their word before and after.
    #[inline(always)]
    pub(super) fn put(&mut self, class: Class, parts: Parts) -> (u64, u64) {
        let word = ((parts.first % PAGEBLOCK_FRAMES) >> class.shift()) / 64;
        let word = &mut self.0[word as usize];
        let before = *word;
        *word |= parts.bits;
        (before, *word)
    }
}

/// One pageblock, without its bits, which change with each block: of this, CPUs have copies in their caches.
///
/// # Invariants
/// A bit is set only if it is split.
#[derive(Clone, Copy)]
pub(super) struct Pageblock {
    pub(super) place: Place,
    /// Whether it is split and only one CPU takes from it.
    pub(super) is_reserved: bool,
}

/// Where a pageblock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the base, or from there with somebody.
    Elsewhere,
    /// As `Elsewhere`, and its owners have parts of it that the base knows nothing of.
    Dissolved,
    /// From here, all of it with one owner.
    Owned,
    /// Here, all of it free.
    Whole,
    /// Here, in blocks of this class.
    Split(Class),
}

impl Pageblock {
    pub(super) const ELSEWHERE: Self = Self { place: Place::Elsewhere, is_reserved: false };

    /// Splits it into blocks of a class, all of them free.
    pub(super) fn split(&mut self, bits: &mut Bits, class: Class) {
        bits.0[..words_of(class)].fill(u64::MAX);
        self.place = Place::Split(class);
    }

    /// Forgets that it was split into this class.
    pub(super) fn unsplit(&mut self, bits: &mut Bits, class: Class, place: Place) {
        bits.0[..words_of(class)].fill(0);
        self.is_reserved = false;
        self.place = place;
    }

    /// Whether a frame is free here.
    pub(super) fn has(&self, bits: &Bits, frame: u32) -> bool {
        match self.place {
            Place::Whole => true,
            Place::Split(class) => {
                let part = (frame % PAGEBLOCK_FRAMES) >> class.shift();
                bits.0[part as usize / 64] & 1 << (part % 64) != 0
            }
            Place::Elsewhere | Place::Dissolved | Place::Owned => false,
        }
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
