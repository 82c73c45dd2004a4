//! Numbers of pages and tables: what an address space has, or by how much it changes.

/// Pages and tables, or how many more or less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Resident pages. All of them are anonymous here; the kernel of 2005 counted both numbers.
    pub rss: i64,
    /// Anonymous resident pages.
    pub anon_rss: i64,
    /// Page tables.
    pub tables: i64,
}

impl Counts {
    /// So many pages more.
    pub(crate) fn pages(pages: i64) -> Self {
        Self { rss: pages, anon_rss: pages, tables: 0 }
    }

    /// So many tables more.
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
