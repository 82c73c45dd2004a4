//! The purpose of a wait for a lock.

/// The part of the kernel that waits for a lock, found from the call chain of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Caller {
    /// A page set is refilled: a zone's lock.
    Refill = 1,
    /// A page set is drained, for any reason: a zone's lock.
    Drain = 2,
    /// A block is allocated without the page sets: a zone's lock.
    Alloc = 3,
    /// A block is freed without the page sets: a zone's lock.
    Free = 4,
    /// Another part of the page allocator, such as compaction or a reading of `/proc`: a zone's lock.
    Other = 5,
    /// Code outside the page allocator: not a zone's lock.
    Elsewhere = 6,
}

impl Caller {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Refill, Self::Drain, Self::Alloc, Self::Free, Self::Other, Self::Elsewhere];

    /// The caller with this code, which a wait has in [`Event::order`](super::Event::order). `None` if the
    /// code is unknown.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=6 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// The code in files: 1 to 6.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether the lock is a zone's.
    #[must_use]
    pub const fn is_of_zone(self) -> bool {
        !matches!(self, Self::Elsewhere)
    }

    /// A word for tables and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refill => "refill",
            Self::Drain => "drain",
            Self::Alloc => "alloc",
            Self::Free => "free",
            Self::Other => "other",
            Self::Elsewhere => "elsewhere",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_again() {
        for caller in Caller::ALL {
            assert_eq!(Caller::from_code(caller.code()), Some(caller));
        }
        assert_eq!((Caller::from_code(0), Caller::from_code(7)), (None, None));
    }
}
