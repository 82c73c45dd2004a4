//! The parts of a play: a chip with its prices, the act of the kernel, and the program's writes.

use anyhow::{Context as _, Result};
use pageset_core::CpuId;
use pageset_sim::stream;
use rand::seq::SliceRandom as _;

use crate::reproduce::published::published;

/// Base pages of a huge page.
pub(super) const PAGES: usize = 512;

/// The processes below one last-level cache, with sizes and prices.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chip {
    /// Processes below this cache.
    pub(super) processes: usize,
    /// Part of the second-level cache that a process has for itself. 0 if all of it is in the last level too.
    pub(super) own_kib: usize,
    /// Size of the last-level cache.
    pub(super) shared_kib: usize,
    /// Number of base pages that the last-level cache compares before it evicts the oldest of them.
    pub(super) ways: usize,
    /// The program's time for a word that a cache has.
    pub(super) word_ns: f64,
    /// Bandwidth of memory for all processes below this cache.
    pub(super) memory_gb_per_s: f64,
    /// Bandwidth of memory for a process that is alone.
    pub(super) process_gb_per_s: f64,
    /// Lost at each base page that does not follow the one before it. A copy loses it once, too.
    pub(super) jump_ns: f64,
    /// Lost at each call: an order visits its page in one call, in a few, or in one for each base page.
    pub(super) call_ns: f64,
    /// Whether all processes copy the same pages, as after a fork.
    pub(super) shares_source: bool,
}

/// The act of the kernel on a huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Copy,
    Clear,
}

/// The order of a process's writes to its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    Up,
    Down,
    /// The same mixed order in each page.
    Mixed,
}

impl Walk {
    /// The base pages in this order.
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
    /// The chip of this name in `caches.csv`.
    pub(super) fn named(name: &str) -> Result<Self> {
        let table = published!("huge-copy/caches.csv")?;
        let row = table.rows_with("chip", name).next().with_context(|| format!("no chip is `{name}`"))?;
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
