//! The memory that a page fault test touches: regions, pages, and threads.

use std::ops::Range;

use pageset_fault::Geometry;
use serde::{Deserialize, Serialize};

/// How threads share the touched memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regions {
    /// Each thread maps a region of its own, as in the program of 2005, where each thread called malloc.
    #[serde(rename = "percore_malloc")]
    Percore,
    /// There is one region, and each thread touches one contiguous part of the region.
    #[serde(rename = "one_region_sliced")]
    Sliced,
    /// There is one region. Thread i touches pages i, i + threads, i + 2 threads, …
    Interleaved,
    /// There is one region, and every thread touches all pages of the region.
    #[serde(rename = "same_pages")]
    Same,
}

impl Regions {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Percore, Self::Sliced, Self::Interleaved, Self::Same];

    /// Name of the mode in results, as in the program of 2005 and its successors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Percore => "percore_malloc",
            Self::Sliced => "one_region_sliced",
            Self::Interleaved => "interleaved",
            Self::Same => "same_pages",
        }
    }

    /// The mode with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|regions| regions.name() == name)
    }

    /// Whether every thread maps a region of its own.
    pub fn is_percore(self) -> bool {
        self == Self::Percore
    }
}

/// One test. The fault engine and the kernel run the same test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of threads that touch pages.
    pub threads: u32,
    /// Number of pages that each thread touches.
    pub thread_pages: u64,
    /// How threads share the memory.
    pub regions: Regions,
    /// Size of pages and tables.
    pub geometry: Geometry,
    /// Number of cache lines that a thread writes in each page.
    pub lines: u32,
    /// Number of frames that a thread fetches with one call of the allocator.
    pub magazine: u32,
    /// Number of pages that a thread skips after each run of 48 touched pages, if threads have their own
    /// regions.
    pub skipped: u64,
}

/// Length of a run of touched pages, if pages are skipped. The length is a guess: 48 pages of 16 KiB are the
/// larger part of 1 MiB.
pub const RUN_PAGES: u64 = 48;

/// Address of the first region. Any address would do.
const BASE: u64 = 1 << 32;

impl Shape {
    /// Pages that are present at the end.
    pub fn pages(&self) -> u64 {
        match self.regions {
            Regions::Same => self.thread_pages,
            _ => self.thread_pages * u64::from(self.threads),
        }
    }

    /// Pages of one mapped region.
    pub fn region_pages(&self) -> u64 {
        if self.regions.is_percore() {
            self.thread_pages + self.thread_pages / RUN_PAGES * self.skipped
        } else {
            self.pages()
        }
    }

    /// Pages of all mapped regions together, skipped pages included.
    pub fn mapped_pages(&self) -> u64 {
        if self.regions.is_percore() {
            self.region_pages() * u64::from(self.threads)
        } else {
            self.region_pages()
        }
    }

    /// Bytes between two lines that are written. Source: spec fault.md §2.4.
    pub fn line_bytes(&self) -> u64 {
        if self.geometry.page_shift() == 12 { 64 } else { 128 }
    }

    /// The number of the page that `thread` touches in step `step`. Pages are counted from the beginning of
    /// the thread's region.
    pub fn page(&self, thread: u32, step: u64) -> u64 {
        let (thread, threads) = (u64::from(thread), u64::from(self.threads));
        match self.regions {
            Regions::Percore => step + step / RUN_PAGES * self.skipped,
            Regions::Same => step,
            Regions::Sliced => thread * self.thread_pages + step,
            Regions::Interleaved => step * threads + thread,
        }
    }

    /// Addresses of the region that a thread touches. A region begins where a leaf table begins. The gap to
    /// the next region is at least one leaf table, so that the engine does not join two regions to one area.
    pub fn region(&self, thread: u32) -> Range<u64> {
        let bytes = self.region_pages() * self.geometry.page_bytes();
        let table = self.geometry.table_span(0);
        let place = if self.regions.is_percore() { u64::from(thread) } else { 0 };
        let start = BASE + place * (bytes.next_multiple_of(table) + table);
        start..start + bytes
    }

    /// Address of the page that a thread touches in step `step`.
    pub fn address(&self, thread: u32, step: u64) -> u64 {
        self.region(thread).start + self.page(thread, step) * self.geometry.page_bytes()
    }

    /// Number of tables that the engine may need at once. The number includes spare tables, because a thread
    /// that loses a race may hold a spare table.
    pub fn tables(&self) -> u32 {
        let regions = if self.regions.is_percore() { u64::from(self.threads) } else { 1 };
        let leaves = regions * self.region_pages().div_ceil(u64::from(self.geometry.entries()));
        let end = self.region(self.threads - 1).end;
        let upper: u64 =
            (1..=3).map(|level| end.div_ceil(self.geometry.table_span(level).min(1 << 62)) + 1).sum();
        u32::try_from(leaves + upper + 3 * u64::from(self.threads) + 8).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shape(regions: Regions) -> Shape {
        Shape {
            threads: 3,
            thread_pages: 700,
            regions,
            geometry: Geometry::PAGES_4K,
            lines: 1,
            magazine: 0,
            skipped: 0,
        }
    }

    #[test]
    fn every_page_is_touched_once_and_lies_in_its_region() {
        for regions in Regions::ALL {
            let shape = shape(regions);
            assert_eq!(Regions::named(regions.name()), Some(regions));
            let mut pages = BTreeSet::new();
            for thread in 0..3 {
                for step in 0..700 {
                    let address = shape.address(thread, step);
                    assert!(shape.region(thread).contains(&address));
                    pages.insert(address);
                }
            }
            assert_eq!(pages.len() as u64, shape.pages(), "{regions:?}");
        }
    }

    #[test]
    fn own_regions_share_no_table() {
        let shape = shape(Regions::Percore);
        let table = |address: u64| address / Geometry::PAGES_4K.table_span(0);
        assert!(table(shape.region(0).end - 1) < table(shape.region(1).start) - 1);
        assert!(shape.tables() >= 3 * 2 + 3);
    }
}
