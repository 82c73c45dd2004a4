//! The shape of a page table: the page size, the entries per table, and the number of levels.

use pageset_core::Order;

/// The shape of an address space's page table. Leaf tables have level 0.
///
/// # Invariants
/// Limits: page shift 6 to 30, index bits 1 to 16, 2 to 6 levels, and at most 62 address bits in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    page_shift: u8,
    index_bits: u8,
    levels: u8,
}

impl Geometry {
    /// The shape of x86-64: pages of 4 KiB, tables of 512 entries, 4 levels. A leaf table covers 2 MiB, and
    /// addresses have 48 bits.
    pub const PAGES_4K: Self = Self { page_shift: 12, index_bits: 9, levels: 4 };
    /// The shape of the ia64 machine in the comparison of 2005 (spec §1.1): pages of 16 KiB, tables of 2048
    /// entries, 3 levels. A leaf table covers 32 MiB, and addresses have 47 bits.
    pub const PAGES_16K: Self = Self { page_shift: 14, index_bits: 11, levels: 3 };

    /// Makes a shape, for example a small shape for a model checker. Returns `None` if a number is outside
    /// the limits of `Geometry`.
    #[must_use]
    pub const fn new(page_shift: u8, index_bits: u8, levels: u8) -> Option<Self> {
        let sane = 6 <= page_shift
            && page_shift <= 30
            && 1 <= index_bits
            && index_bits <= 16
            && 2 <= levels
            && levels <= 6;
        // INVARIANT: the two conditions of this `if` check all limits of `Geometry`.
        if sane && page_shift + index_bits * levels <= 62 {
            Some(Self { page_shift, index_bits, levels })
        } else {
            None
        }
    }

    /// Bytes of a page.
    #[must_use]
    pub const fn page_bytes(self) -> u64 {
        1 << self.page_shift
    }

    /// Base-2 logarithm of the page size.
    #[must_use]
    pub const fn page_shift(self) -> u8 {
        self.page_shift
    }

    /// Entries of a table.
    #[must_use]
    pub const fn entries(self) -> u32 {
        1 << self.index_bits
    }

    /// The first address after the end of the address space.
    #[must_use]
    pub const fn end(self) -> u64 {
        1 << (self.page_shift + self.index_bits * self.levels)
    }

    /// The number of bytes that a table of level `level` covers: 2 MiB for level 0 of
    /// [`PAGES_4K`](Self::PAGES_4K).
    #[must_use]
    pub const fn table_span(self, level: u8) -> u64 {
        1 << (self.page_shift + self.index_bits * (level + 1))
    }

    /// The number of bytes that one word in a table of level `level` covers.
    pub(crate) const fn word_span(self, level: u8) -> u64 {
        self.table_span(level) >> self.index_bits
    }

    /// The number of small pages that one word in a table of level `level` covers.
    pub(crate) const fn pages_per_word(self, level: u8) -> i64 {
        1 << (self.index_bits * level)
    }

    /// The order of a huge page, which one word of level 1 maps. `None` if this order exceeds the largest
    /// order of `pageset-core`.
    #[must_use]
    pub const fn huge_order(self) -> Option<Order> {
        Order::new(self.index_bits)
    }

    /// Level of the root table.
    pub(crate) const fn root_level(self) -> u8 {
        self.levels - 1
    }

    /// The index of the word for `va` in its table of level `level`.
    #[inline]
    pub(crate) const fn index(self, va: u64, level: u8) -> u32 {
        (va >> (self.page_shift + self.index_bits * level)) as u32 & (self.entries() - 1)
    }

    /// The first address of the small page that contains `va`.
    #[inline]
    pub(crate) const fn page_start(self, va: u64) -> u64 {
        va & !(self.page_bytes() - 1)
    }

    /// The range of addresses that the table of level `level` for `va` covers.
    pub(crate) const fn span_around(self, va: u64, level: u8) -> core::ops::Range<u64> {
        let start = va & !(self.table_span(level) - 1);
        start..start + self.table_span(level)
    }

    pub(crate) const fn index_bits(self) -> u8 {
        self.index_bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_both_page_sizes() {
        let (small, large) = (Geometry::PAGES_4K, Geometry::PAGES_16K);
        assert_eq!((small.entries(), small.table_span(0), small.end()), (512, 2 << 20, 1 << 48));
        assert_eq!((large.entries(), large.table_span(0), large.end()), (2048, 32 << 20, 1 << 47));
        assert_eq!(small.huge_order(), Some(Order::THP));
        assert_eq!(large.huge_order(), None);
    }

    #[test]
    fn an_address_is_its_indices() {
        let va = (5 << 39) | (4 << 30) | (3 << 21) | (2 << 12) | 17;
        let indices: [u32; 4] = core::array::from_fn(|level| Geometry::PAGES_4K.index(va, level as u8));
        assert_eq!(indices, [2, 3, 4, 5]);
        assert_eq!(Geometry::PAGES_4K.page_start(va), va - 17);
        assert_eq!(Geometry::PAGES_4K.span_around(va, 0), va - 17 - (2 << 12)..va - 17 + (510 << 12));
    }

    #[test]
    fn nonsense_has_no_geometry() {
        for (page_shift, index_bits, levels) in [(5, 9, 4), (12, 0, 4), (12, 9, 1), (12, 9, 6), (12, 17, 2)] {
            assert_eq!(Geometry::new(page_shift, index_bits, levels), None);
        }
        assert!(Geometry::new(12, 1, 2).is_some());
    }
}
