//! An array's entries.

/// A block in an array: its first frame, and whether the whole block is known to be zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Entry(pub(super) u32);

impl Entry {
    /// The number that an empty array returns. No block has this number.
    pub(crate) const NONE: u32 = u32::MAX;

    #[inline(always)]
    pub(crate) const fn dirty(frame: u32) -> Self {
        Self(frame << 1)
    }

    pub(crate) const fn with_zero(frame: u32, is_zero: ZeroState) -> Self {
        Self(frame << 1 | is_zero as u32)
    }

    #[inline(always)]
    pub(crate) const fn from_raw(raw: u32) -> Option<Self> {
        if raw == Self::NONE { None } else { Some(Self(raw)) }
    }

    #[inline(always)]
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }

    #[inline(always)]
    pub(crate) const fn frame(self) -> u32 {
        self.0 >> 1
    }

    #[inline(always)]
    pub(crate) const fn zero(self) -> ZeroState {
        ZeroState::of_bit(self.0 as u64)
    }
}

/// What is known about the contents of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZeroState {
    /// The bytes may have any value.
    Unknown = 0,
    /// All bytes are zero.
    Zero = 1,
}

impl ZeroState {
    /// The state that the lowest bit of a word encodes.
    #[inline(always)]
    pub(crate) const fn of_bit(word: u64) -> Self {
        if word & 1 == 1 { Self::Zero } else { Self::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_frame_and_knowledge() {
        let entry = Entry::with_zero(0x3fff_fffe, ZeroState::Zero);
        assert_eq!((entry.frame(), entry.zero()), (0x3fff_fffe, ZeroState::Zero));
        assert_eq!(Entry::dirty(7).zero(), ZeroState::Unknown);
        assert_eq!(Entry::from_raw(Entry::NONE), None);
    }
}
