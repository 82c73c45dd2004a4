//! The inputs of the cache model: a chip with its costs, the kernel's operation, and the program's writes.

use pageset_core::CpuId;
use pageset_sim::stream;
use rand::seq::SliceRandom as _;

/// Number of base pages of a huge page.
pub(super) const PAGES: usize = 512;

/// The caches and costs of a chip, and the number of processes that share its last-level cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    /// Number of processes that share the last-level cache.
    pub processes: usize,
    /// Part of the second-level cache that each process has for itself, in KiB. Use 0 if the last-level cache
    /// contains everything that the second-level cache has.
    pub own_kib: usize,
    /// Size of the last-level cache, in KiB.
    pub shared_kib: usize,
    /// Number of base pages that the last-level cache chooses at random before it evicts the oldest chosen
    /// base page.
    pub ways: usize,
    /// Time that the program needs to write a word that is in a cache.
    pub word_ns: f64,
    /// Bandwidth of memory for all processes that share the last-level cache.
    pub memory_gb_per_s: f64,
    /// Bandwidth of memory for a process that runs alone.
    pub process_gb_per_s: f64,
    /// Time that the kernel loses if the next base page does not follow the previous base page in memory. A
    /// copy loses `jump_ns` only once for each jump, not once for the source and once for the target.
    pub jump_ns: f64,
    /// Time of each call of the function that copies or clears. Depending on the order of visits, the kernel
    /// needs one call for the whole huge page, a few calls, or one call for each base page.
    pub call_ns: f64,
    /// Whether all processes copy the same pages, as after a fork.
    pub shares_source: bool,
}

/// The kernel's operation on a huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOperation {
    /// The kernel copies the page, as after a fork.
    Copy,
    /// The kernel clears the page.
    Clear,
}

/// The order of a process's writes to the base pages of its huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// The base pages from the first to the last.
    Up,
    /// The base pages from the last to the first.
    Down,
    /// The base pages in a random order that is the same for each huge page.
    Mixed,
}

impl Walk {
    /// Returns the base pages in the order of the process's writes.
    #[must_use]
    pub fn pages(self) -> Vec<usize> {
        let mut pages: Vec<_> = (0..PAGES).collect();
        match self {
            Self::Up => {}
            Self::Down => pages.reverse(),
            Self::Mixed => pages.shuffle(&mut stream(1, "huge-copy-walk", CpuId(0))),
        }
        pages
    }
}
