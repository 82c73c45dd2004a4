//! Work before a page is asked for.

use serde::{Deserialize, Serialize};

/// Pages mapped and pages cleared ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ahead {
    /// A task whose faults come one after another gets runs of pages, each twice as long, up to 2^this; 0
    /// maps what is asked for.
    pub prefault_order: u8,
    /// Whether all pages were cleared before, when there was time.
    pub prezero: bool,
}

impl Ahead {
    /// Frames that each CPU's pool of cleared ones may hold, if its thread touches so many pages.
    #[must_use]
    pub fn pool(self, thread_pages: u64) -> u32 {
        if self.prezero { u32::try_from(thread_pages).unwrap_or(u32::MAX) } else { 0 }
    }
}
