//! One word of a page table (Linux's pte).
//!
//! One rule keeps concurrent faults correct: **only a word that is all zeros is empty, and any fault may fill
//! an empty word** (spec §1.1).

use pageset_core::Pfn;

use crate::area::Access;

/// One 8-byte word of a page table. Bits that x86-64 defines have the same positions as in x86-64.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pte(u64);

/// The index of a page table among all page tables of an engine. A word that leads to a table has the table's
/// index instead of a frame number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TableId(pub(crate) u32);

/// The meaning of a page-table word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The word is all zeros and maps nothing. Any fault may fill the word.
    Empty,
    /// The word maps a page, or on level 1 a huge page.
    Page,
    /// The word leads to this table of the next lower level.
    Table(TableId),
    /// The page was reclaimed. The field of `Reclaimed` is the number of the host's slot that keeps the
    /// page's contents.
    Reclaimed(u64),
    /// Another task is changing the word, or has taken the word's table out of the tree. A fault must start
    /// again from the root.
    Busy,
}

impl Pte {
    /// The empty word, which a fault may fill.
    pub const EMPTY: Self = Self(0);

    const PRESENT: u64 = 1;
    const WRITE: u64 = 1 << 1;
    const USER: u64 = 1 << 2;
    const ACCESSED: u64 = 1 << 5;
    const DIRTY: u64 = 1 << 6;
    const HUGE: u64 = 1 << 7;
    /// In x86-64's format, bits 52 to 62 are available to software.
    const ANON: u64 = 1 << 52;
    const POISONED: u64 = 1 << 53;
    const META: u64 = 1 << 54;
    const MIGRATING: u64 = 1 << 55;
    /// The word maps the zero page, which all address spaces share. The zero page has no reference count, and
    /// no address space counts the zero page.
    const ZERO_PAGE: u64 = 1 << 56;
    /// A fault on another page of the same run mapped this page (prefaulting).
    const PREFAULTED: u64 = 1 << 57;
    const NUMBER_SHIFT: u32 = 12;
    const NUMBER: u64 = ((1 << 40) - 1) << Self::NUMBER_SHIFT;

    /// The value of a word in a table that a collapse takes out of the tree. No fault may fill a word with
    /// the value `POISON`.
    pub(crate) const POISON: Self = Self(Self::POISONED);
    /// The value of a word while a collapse replaces the table that the word named, or while a reclaim takes
    /// the page that the word mapped. A fault that finds the value `MIGR` must wait.
    pub(crate) const MIGR: Self = Self(Self::MIGRATING);

    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The word's bits, as the page table holds them.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    const fn number(self) -> u64 {
        (self.0 & Self::NUMBER) >> Self::NUMBER_SHIFT
    }

    /// The word that maps an anonymous page with the right to read.
    #[inline]
    pub(crate) const fn anon(pfn: Pfn) -> Self {
        Self(
            Self::PRESENT
                | Self::USER
                | Self::ANON
                | Self::ACCESSED
                | (pfn.0 << Self::NUMBER_SHIFT) & Self::NUMBER,
        )
    }

    /// The word that maps the shared page of zeros.
    pub(crate) const fn zero_page() -> Self {
        Self(Self::PRESENT | Self::USER | Self::ACCESSED | Self::ZERO_PAGE)
    }

    pub(crate) const fn table(id: TableId) -> Self {
        Self(Self::PRESENT | Self::WRITE | Self::USER | (id.0 as u64) << Self::NUMBER_SHIFT)
    }

    pub(crate) const fn reclaimed(slot: u64) -> Self {
        Self(Self::META | (slot << Self::NUMBER_SHIFT) & Self::NUMBER)
    }

    #[inline]
    pub(crate) const fn writable(self) -> Self {
        Self(self.0 | Self::WRITE | Self::DIRTY)
    }

    pub(crate) const fn read_only(self) -> Self {
        Self(self.0 & !Self::WRITE)
    }

    /// The same word without any access rights. The page stays mapped.
    pub(crate) const fn hidden(self) -> Self {
        Self(self.0 & !(Self::WRITE | Self::USER))
    }

    /// The same word with loads allowed again.
    pub(crate) const fn visible(self) -> Self {
        Self(self.0 | Self::USER)
    }

    pub(crate) const fn huge(self) -> Self {
        Self(self.0 | Self::HUGE)
    }

    /// The word that maps page number `index` of this huge page as a small page.
    pub(crate) const fn small(self, index: u32) -> Self {
        Self((self.0 & !Self::HUGE) + ((index as u64) << Self::NUMBER_SHIFT))
    }

    pub(crate) const fn prefaulted(self) -> Self {
        Self((self.0 | Self::PREFAULTED) & !Self::ACCESSED)
    }

    pub(crate) const fn accessed(self) -> Self {
        Self(self.0 | Self::ACCESSED)
    }

    /// Whether the word maps a page or leads to a table.
    #[inline]
    #[must_use]
    pub const fn is_present(self) -> bool {
        self.0 & Self::PRESENT != 0
    }

    /// Whether the word allows stores.
    #[inline]
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.0 & Self::WRITE != 0
    }

    /// Whether a processor that reads this word would permit the access.
    #[inline]
    #[must_use]
    pub const fn permits(self, access: Access) -> bool {
        let needed = match access {
            Access::Read => Self::PRESENT | Self::USER,
            Access::Write => Self::PRESENT | Self::USER | Self::WRITE,
        };
        self.0 & needed == needed
    }

    /// Whether this word maps a whole huge page.
    #[must_use]
    pub const fn is_huge(self) -> bool {
        self.0 & Self::HUGE != 0
    }

    /// Whether the word maps the shared zero page, which belongs to no address space.
    #[must_use]
    pub const fn is_zero_page(self) -> bool {
        self.0 & Self::ZERO_PAGE != 0
    }

    /// Whether prefaulting mapped the page and no task has touched the page since.
    #[must_use]
    pub const fn is_untouched(self) -> bool {
        self.0 & (Self::PREFAULTED | Self::ACCESSED) == Self::PREFAULTED
    }

    /// The frame of the page that the word maps.
    #[inline]
    #[must_use]
    pub const fn pfn(self) -> Pfn {
        Pfn(self.number())
    }

    /// Whether a task may change this word to `new` in one step. For example, an empty word may become a page
    /// or a table, but a writable page must not directly become another page. In debug builds,
    /// `AnySync::replace` checks each change by this function.
    pub(crate) fn may_become(self, new: Self) -> bool {
        let is_page = |word: Self| word.0 & (Self::ANON | Self::ZERO_PAGE) != 0;
        let is_table = |word: Self| word.is_present() && !is_page(word);
        if is_page(new) && (!new.is_present() || new.is_zero_page() && new.is_writable()) {
            return false;
        }
        match self {
            Self::EMPTY => is_page(new) || is_table(new),
            Self::MIGR => is_page(new) || new.0 & Self::META != 0,
            _ if is_table(self) => new == Self::EMPTY || new == Self::MIGR,
            _ if self.0 & Self::META != 0 => is_page(new) && !new.is_zero_page(),
            _ if is_page(self) && is_page(new) => {
                let is_same = self.is_huge() == new.is_huge() && self.pfn() == new.pfn();
                is_same || !self.is_writable() && !self.is_huge() && !new.is_huge() && new.is_writable()
            }
            _ => is_page(self) && (new == Self::MIGR || self.is_huge() && is_table(new)),
        }
    }

    /// The meaning of the word in a table of level `level`.
    #[inline]
    pub(crate) const fn meaning(self, level: u8) -> Meaning {
        if self.0 == 0 {
            Meaning::Empty
        } else if self.is_present() {
            if level > 0 && !self.is_huge() {
                Meaning::Table(TableId(self.number() as u32))
            } else {
                Meaning::Page
            }
        } else if self.0 & Self::META != 0 {
            Meaning::Reclaimed(self.number())
        } else {
            Meaning::Busy
        }
    }
}

impl core::fmt::Debug for Pte {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Pte({:#x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zero_is_a_licence_to_populate() {
        let words = [
            Pte::POISON,
            Pte::MIGR,
            Pte::zero_page(),
            Pte::reclaimed(0),
            Pte::anon(Pfn(0)),
            Pte::table(TableId(0)),
        ];
        assert!(words.iter().all(|word| word.meaning(0) != Meaning::Empty));
        assert_eq!(Pte::EMPTY.meaning(0), Meaning::Empty);
    }

    #[test]
    fn steps_that_would_lose_a_page_are_known() {
        let (page, zero) = (Pte::anon(Pfn(5)), Pte::zero_page());
        let (table, other) = (Pte::table(TableId(3)), Pte::anon(Pfn(6)).writable());
        let good = [
            (Pte::EMPTY, page),
            (Pte::EMPTY, zero),
            (Pte::EMPTY, table),
            (zero, other),
            (page, page.writable()),
            (page, other),
            (page, Pte::MIGR),
            (Pte::MIGR, Pte::reclaimed(2)),
            (Pte::reclaimed(2), page),
            (page.huge(), table),
            (table, Pte::MIGR),
            (Pte::MIGR, page.huge()),
            (table, Pte::EMPTY),
        ];
        let bad = [
            (Pte::EMPTY, Pte::reclaimed(2)),
            (Pte::EMPTY, Pte::MIGR),
            (Pte::POISON, page),
            (Pte::MIGR, Pte::EMPTY),
            (page, Pte::EMPTY),
            (page.writable(), other),
            (page, table),
            (page, Pte::anon(Pfn(6))),
            (page.huge(), other),
            (table, page),
            (zero, zero.writable()),
            (Pte::reclaimed(2), zero),
            (Pte::reclaimed(2), Pte::EMPTY),
        ];
        for (old, new) in good {
            assert!(old.may_become(new), "{old:?} to {new:?}");
        }
        for (old, new) in bad {
            assert!(!old.may_become(new), "{old:?} to {new:?}");
        }
    }

    #[test]
    fn words_say_what_was_put_in() {
        let page = Pte::anon(Pfn(0x12_3456)).writable();
        assert_eq!((page.pfn(), page.is_writable(), page.meaning(0)), (Pfn(0x12_3456), true, Meaning::Page));
        assert_eq!(page.huge().meaning(1), Meaning::Page);
        assert_eq!(page.huge().small(3), Pte::anon(Pfn(0x12_3459)).writable());
        assert_eq!(Pte::table(TableId(7)).meaning(1), Meaning::Table(TableId(7)));
        assert_eq!(Pte::reclaimed(9).meaning(0), Meaning::Reclaimed(9));
        assert_eq!(Pte::MIGR.meaning(1), Meaning::Busy);
        assert!(page.prefaulted().is_untouched() && !page.prefaulted().accessed().is_untouched());
    }
}
