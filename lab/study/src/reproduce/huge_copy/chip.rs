//! The inputs of the model: a chip with its costs, the kernel's operation, and the program's writes.

use anyhow::{Context as _, Result};
use pageset_core::CpuId;
use pageset_sim::stream;
use rand::seq::SliceRandom as _;

use crate::reproduce::published::published;

/// Number of base pages of a huge page.
pub(super) const PAGES: usize = 512;

/// The processes that share one last-level cache, with the sizes of caches and the costs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chip {
    /// Number of processes that share the last-level cache.
    pub(super) processes: usize,
    /// Part of the second-level cache that a process has for itself, in KiB. The value is 0 if the last-level
    /// cache contains everything that the second-level cache has.
    pub(super) own_kib: usize,
    /// Size of the last-level cache, in KiB.
    pub(super) shared_kib: usize,
    /// Number of base pages that the last-level cache compares in order to evict the oldest of them.
    pub(super) ways: usize,
    /// Time that the program needs for a word that is in a cache.
    pub(super) word_ns: f64,
    /// Bandwidth of memory for all processes that share the last-level cache.
    pub(super) memory_gb_per_s: f64,
    /// Bandwidth of memory for a process that runs alone.
    pub(super) process_gb_per_s: f64,
    /// Time that is lost at each base page that does not follow the base page before it. A copy of a base
    /// page loses the time of a jump only once, not once for the source and once for the target.
    pub(super) jump_ns: f64,
    /// Time that is lost at each call of the function that copies or clears. An order needs one call for the
    /// huge page, a few calls, or one call for each base page.
    pub(super) call_ns: f64,
    /// Whether all processes copy the same pages, as after a fork.
    pub(super) shares_source: bool,
}

/// The kernel's operation on a huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Copy,
    Clear,
}

/// The sequence of a process's writes to its huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    Up,
    Down,
    /// The base pages in a mixed sequence, the same for each huge page.
    Mixed,
}

impl Walk {
    /// Returns the base pages in this sequence.
    pub(super) fn pages(self) -> Vec<usize> {
        let mut pages: Vec<_> = (0..PAGES).collect();
        match self {
            Self::Up => {}
            Self::Down => pages.reverse(),
            Self::Mixed => pages.shuffle(&mut stream(1, "huge-copy-walk", CpuId(0))),
        }
        pages
    }
}

impl Chip {
    /// Returns the chip that `caches.csv` lists under this name.
    pub(super) fn named(name: &str) -> Result<Self> {
        let table = published!("huge-copy/caches.csv")?;
        let row = table
            .rows_with("chip", name)
            .next()
            .with_context(|| format!("caches.csv has no chip `{name}`"))?;
        let value = |column| row.number(column)?.with_context(|| format!("`{name}` has no `{column}`"));
        Ok(Self {
            processes: value("processes")? as usize,
            own_kib: value("own_kib")? as usize,
            shared_kib: value("shared_kib")? as usize,
            ways: value("ways")? as usize,
            word_ns: value("word_ns")?,
            memory_gb_per_s: value("memory_gb_per_s")?,
            process_gb_per_s: value("process_gb_per_s")?,
            jump_ns: value("jump_ns")?,
            call_ns: value("call_ns")?,
            shares_source: true,
        })
    }
}
