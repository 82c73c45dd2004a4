//! Work that is done before a page is requested.

use serde::{Deserialize, Serialize};

/// Pages mapped and pages cleared ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ahead {
    /// A task with consecutive faults gets runs of pages, each twice as long as the one before, up to 2^this
    /// pages. 0 maps only the requested page.
    pub prefault_order: u8,
    /// Whether all pages are cleared beforehand, outside the measured time.
    pub prezero: bool,
}

impl Ahead {
    /// Capacity of each CPU's pool of cleared frames, if its thread touches this many pages.
    #[must_use]
    pub fn pool(self, thread_pages: u64) -> u32 {
        if self.prezero { u32::try_from(thread_pages).unwrap_or(u32::MAX) } else { 0 }
    }
}
