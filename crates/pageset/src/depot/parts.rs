//! Blocks of one class by the bits of a word.

use pageset_core::PAGEBLOCK_FRAMES;

use crate::arrays::Class;

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
    pub(super) const NONE: Self = Self { first: 0, bits: 0, count: 0 };

    /// A whole pageblock.
    pub(super) fn pageblock(first: u32) -> Self {
        debug_assert!(first.is_multiple_of(PAGEBLOCK_FRAMES), "a pageblock begins there");
        Self { first, bits: 1, count: 1 }
    }

    /// One block of a class below that of pageblocks.
    #[inline(always)]
    pub(super) fn one(frame: u32, class: Class) -> Self {
        let part = (frame >> class.shift()) % 64;
        Self { first: frame - (part << class.shift()), bits: 1 << part, count: 1 }
    }

    /// Adds a block, if it lies in the same word and is not one of these; `false` if not.
    #[inline(always)]
    pub(super) fn add(&mut self, frame: u32, class: Class) -> bool {
        if (frame ^ self.first) >> class.shift() >= 64 {
            return false;
        }
        let bit = 1 << ((frame >> class.shift()) % 64);
        let belongs = self.bits & bit == 0;
        if belongs {
            self.bits |= bit;
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
