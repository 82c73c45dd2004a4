//! The part of the kernel that waits for a lock.

/// The part of the kernel that waits for a lock, according to the call chain of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Caller {
    /// Code that refills a page set, and waits for a zone lock.
    Refill = 1,
    /// Code that drains a page set for any reason, and waits for a zone lock.
    Drain = 2,
    /// Code that allocates a block without a page set, and waits for a zone lock.
    Alloc = 3,
    /// Code that frees a block without a page set, and waits for a zone lock.
    Free = 4,
    /// Another part of the page allocator, such as compaction or a reader of `/proc`, that waits for a zone
    /// lock.
    Other = 5,
    /// Code outside the page allocator, which waits for a lock that is not a zone lock.
    Elsewhere = 6,
}

impl Caller {
    /// The complete list.
    pub const ALL: [Self; 6] =
        [Self::Refill, Self::Drain, Self::Alloc, Self::Free, Self::Other, Self::Elsewhere];

    /// The caller with this code, or `None` if the code is unknown. The event that begins a wait has the code
    /// in [`Event::order`](super::Event::order).
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1..=6 => Some(Self::ALL[code as usize - 1]),
            _ => None,
        }
    }

    /// The number of this caller in files: 1 to 6.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether the caller waits for a zone lock.
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
