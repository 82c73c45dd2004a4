//! Numbers of pages and page tables of an address space, or changes of such numbers.

/// Numbers of resident pages and page tables of an address space, or changes of such numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of resident pages. All pages of this crate are anonymous, so `rss` equals `anon_rss`. The
    /// crate has both counters, because Linux had both in 2005, and a fault paid for two counters.
    pub rss: i64,
    /// Anonymous resident pages.
    pub anon_rss: i64,
    /// Page tables.
    pub tables: i64,
}

impl Counts {
    /// Makes counts of `pages` resident pages, all anonymous.
    pub(crate) fn pages(pages: i64) -> Self {
        Self { rss: pages, anon_rss: pages, tables: 0 }
    }

    /// Makes counts of `tables` page tables.
    pub(crate) fn tables(tables: i64) -> Self {
        Self { tables, ..Self::default() }
    }

    pub(crate) fn is_zero(self) -> bool {
        self == Self::default()
    }
}

impl core::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.rss += other.rss;
        self.anon_rss += other.anon_rss;
        self.tables += other.tables;
    }
}
