//! What one policy made of a recording.

use pageset_core::{Counters, Policy};
use serde::Serialize;

/// One policy's row. All counts are since the start of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Name of the policy.
    pub policy: &'static str,
    /// Blocks allocated: successful `mm_page_alloc` events and pages of bulk allocations.
    pub allocs: u64,
    /// Blocks freed.
    pub frees: u64,
    /// Allocations that a page set served without fetching from its zone.
    pub pcp_hits: u64,
    /// Times a page set fetched blocks from its zone.
    pub refills: u64,
    /// Pages fetched so: the 2023 series' *alloc_zone*.
    pub refilled_pages: u64,
    /// Times a page set gave blocks back.
    pub drains: u64,
    /// Pages given back so.
    pub drained_pages: u64,
    /// Drains because of consecutive high-order frees: the 2023 series' *free_high*.
    pub free_high_drains: u64,
    /// Pages that passed between zone and user without a page set.
    pub direct_pages: u64,
    /// Times a zone's lock was taken.
    pub zone_lock_acquisitions: u64,
    /// Most pages that all page sets held together.
    pub pcp_pages_peak: u64,
    /// Pages they held at the end.
    pub pcp_pages_end: u64,
    /// Pages they hold after a minute without work.
    pub pcp_pages_idle: u64,
    /// Frees of pages whose allocation the recording does not show; they were served from the pages in use before.
    pub unmatched_frees: u64,
    /// Events of the recording that never reached the replay.
    pub lost_events: u64,
    /// Allocations that succeeded in the recording but failed here.
    pub failed_allocs: u64,
}

impl Outcome {
    pub(super) fn new(policy: &Policy, counters: &Counters) -> Self {
        Self {
            policy: policy.name,
            allocs: counters.pcp_alloc + counters.direct_alloc,
            frees: counters.pcp_free + counters.direct_free,
            pcp_hits: counters.pcp_alloc.saturating_sub(counters.refills),
            refills: counters.refills,
            refilled_pages: counters.refilled_pages,
            drains: counters.drains,
            drained_pages: counters.drained_pages,
            free_high_drains: counters.free_high_drains,
            direct_pages: counters.direct_pages,
            // A replay cuts blocks that were in use before the recording; no kernel takes a lock for that.
            zone_lock_acquisitions: counters.zone_lock_acquisitions - counters.splits,
            pcp_pages_peak: 0,
            pcp_pages_end: 0,
            pcp_pages_idle: 0,
            unmatched_frees: 0,
            lost_events: 0,
            failed_allocs: 0,
        }
    }

    /// Share of allocations that a page set served without its zone, in percent; `None` without allocations.
    #[must_use]
    pub fn hit_percent(&self) -> Option<f64> {
        (self.allocs > 0).then(|| 100.0 * self.pcp_hits as f64 / self.allocs as f64)
    }

    /// Pages that left or entered a zone per time a zone's lock was taken; `None` if none was.
    #[must_use]
    pub fn pages_per_acquisition(&self) -> Option<f64> {
        let moved = self.refilled_pages + self.drained_pages + self.direct_pages;
        (self.zone_lock_acquisitions > 0).then(|| moved as f64 / self.zone_lock_acquisitions as f64)
    }
}
