//! Prefaulting as in the patches of December 2004 (spec §1.9). If a task touches consecutive pages, each
//! fault maps a run that is twice as long as the run before, up to a limit.

use crate::geometry::Geometry;

/// The largest order of a run, even if the caller asks for a larger order. Source: spec §1.9, the largest
/// order in the measurements of 2004.
pub(crate) const ORDER_MAX: u8 = 5;

/// The address of the page where a task's next fault is expected, and the order of the last run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefault {
    next: u64,
    order: u8,
}

impl Prefault {
    /// The value before a task's first fault. The address in `NONE` is not the start of a page, so no fault
    /// matches `NONE`.
    pub(crate) const NONE: Self = Self { next: u64::MAX, order: 0 };

    /// Returns the number of pages that a fault at `page` maps, including `page` itself. The number of pages
    /// is at most 2^`largest` and at most `room`. Also notes the page where the next fault is expected.
    pub(crate) fn foresee(&mut self, geometry: Geometry, page: u64, largest: u8, room: u32) -> u32 {
        let largest = largest.min(ORDER_MAX);
        self.order = if self.next == page { (self.order + 1).min(largest) } else { 0 };
        let pages = (1 << self.order).min(room);
        self.next = page + (u64::from(pages) << geometry.page_shift());
        pages
    }
}
