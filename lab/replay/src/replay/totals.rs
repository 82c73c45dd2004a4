//! Counts of the page sets' decisions during a play.

use super::bundles::Bundle;

/// Counts since the last call of [`begin`](Self::begin).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) allocs: u64,
    pub(super) frees: u64,
    pub(super) pcp_allocs: u64,
    /// Number of pages that page sets handed out and took back.
    pub(super) asked_pages: u64,
    pub(super) refills: u64,
    pub(super) refilled_pages: u64,
    pub(super) drains: u64,
    pub(super) drained_pages: u64,
    pub(super) free_high_drains: u64,
    /// How many times the lock of a zone was taken for drains, once for each slice.
    pub(super) drain_holds: u64,
    pub(super) direct_blocks: u64,
    pub(super) direct_pages: u64,
    /// The number of pages in each page set now.
    held: Vec<i32>,
    /// The current sum of the numbers in `held`.
    held_now: i64,
    /// The largest sum of the numbers in `held` since the last call of `begin`.
    held_peak: i64,
}

impl Totals {
    pub(super) fn new(sets: usize) -> Self {
        Self { held: vec![0; sets], ..Self::default() }
    }

    pub(super) fn begin(&mut self, held: impl Iterator<Item = i32>) {
        let held: Vec<i32> = held.collect();
        let held_now = held.iter().map(|pages| i64::from(*pages)).sum();
        *self = Self { held, held_now, held_peak: held_now, ..Self::default() };
    }

    #[inline]
    pub(super) fn refilled(&mut self, pages: u64) {
        self.refills += 1;
        self.refilled_pages += pages;
    }

    #[inline]
    pub(super) fn drained(&mut self, pages: i32, is_free_high: bool) {
        self.drains += u64::from(pages > 0);
        self.drained_pages += pages.max(0) as u64;
        self.free_high_drains += u64::from(is_free_high);
    }

    #[inline]
    pub(super) fn note_held(&mut self, set: usize, pages: i32) {
        self.note_held_after(set, pages);
        self.held_peak = self.held_peak.max(self.held_now);
    }

    /// Adds a bundle that needs no refill and no drain. Call this method before the page sets change.
    #[inline]
    pub(super) fn passed(&mut self, bundle: &Bundle) {
        self.allocs += u64::from(bundle.allocs);
        self.pcp_allocs += u64::from(bundle.allocs);
        self.frees += u64::from(bundle.frees);
        self.asked_pages += u64::from(bundle.asked_pages);
        self.held_peak = self.held_peak.max(self.held_now + i64::from(bundle.most));
    }

    /// Notes the number of pages that a page set holds after a bundle. The caller has already noted the
    /// largest number of pages within the bundle.
    #[inline]
    pub(super) fn note_held_after(&mut self, set: usize, pages: i32) {
        self.held_now += i64::from(pages - std::mem::replace(&mut self.held[set], pages));
    }

    pub(super) fn held_peak(&self) -> u64 {
        self.held_peak.max(0) as u64
    }

    pub(super) fn held_now(&self) -> u64 {
        self.held_now.max(0) as u64
    }

    /// Number of pages that page sets fetched from their zones, plus pages that page sets gave back.
    pub(super) fn passed_pages(&self) -> u64 {
        self.refilled_pages + self.drained_pages
    }

    /// Number of times that a zone's lock was taken.
    pub(super) fn zone_lock_acquisitions(&self) -> u64 {
        self.refills + self.drain_holds + self.direct_blocks
    }

    /// Number of refills and drains.
    pub(super) fn visits(&self) -> u64 {
        self.refills + self.drains
    }
}
