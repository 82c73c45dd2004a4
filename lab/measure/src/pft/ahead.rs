//! Describes work that is done before a thread requests a page.

use serde::{Deserialize, Serialize};

/// How many pages are mapped ahead, and whether pages are cleared ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ahead {
    /// A task with consecutive faults gets runs of pages. Each run is twice as long as the run before, up to
    /// 2^`prefault_order` pages. With 0, a fault maps only the requested page.
    pub prefault_order: u8,
    /// Whether all pages are cleared beforehand, outside the measured time.
    pub prezero: bool,
}

impl Ahead {
    /// Returns the capacity of each CPU's pool of cleared frames, if a thread touches `thread_pages` pages.
    #[must_use]
    pub fn pool(self, thread_pages: u64) -> u32 {
        if self.prezero { u32::try_from(thread_pages).unwrap_or(u32::MAX) } else { 0 }
    }
}
