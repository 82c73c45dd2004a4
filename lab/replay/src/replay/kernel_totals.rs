//! The recorded kernel's own counts.

/// The numbers of a kernel's refills and drains of page sets. `None` stands for a count that was not
/// recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct KernelTotals {
    /// Number of refills.
    pub refills: Option<u64>,
    /// Number of pages that refills fetched.
    pub refilled_pages: Option<u64>,
    /// Number of drains.
    pub drains: Option<u64>,
    /// Number of pages that drains gave back.
    pub drained_pages: Option<u64>,
}

impl KernelTotals {
    /// Number of refills and drains.
    #[must_use]
    pub fn visits(&self) -> Option<u64> {
        Some(self.refills? + self.drains?)
    }
}
