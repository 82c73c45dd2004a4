//! The recorded kernel's own counts.

/// A kernel's refills and drains of page sets. `None` stands for a count that was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct KernelTotals {
    /// Refills.
    pub refills: Option<u64>,
    /// Pages that refills fetched.
    pub refilled_pages: Option<u64>,
    /// Drains.
    pub drains: Option<u64>,
    /// Pages that drains gave back.
    pub drained_pages: Option<u64>,
}

impl KernelTotals {
    /// Refills and drains.
    #[must_use]
    pub fn visits(&self) -> Option<u64> {
        Some(self.refills? + self.drains?)
    }
}
