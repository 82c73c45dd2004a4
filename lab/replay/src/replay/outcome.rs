//! The counts of one policy's replay.

use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::forecast::Forecast;
use super::interval::{Basis, Interval, Kind};
use super::totals::Totals;

/// The counts of a replay under one policy: a row of the result. All counts are from the
/// [`Window`](super::Window).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Name of the policy, and the settings that differ from the recorded settings.
    pub policy: String,
    /// Whether this row is for the recorded kernel with its recorded settings.
    pub is_recorded_kernel: bool,
    /// Number of blocks allocated: successful `mm_page_alloc` events and pages of bulk allocations.
    pub allocs: u64,
    /// Number of blocks freed.
    pub frees: u64,
    /// Number of allocations that a page set served without a refill.
    pub pcp_hits: u64,
    /// Number of times that a page set fetched blocks from its zone.
    pub refills: u64,
    /// Number of pages that refills fetched. The tables of the 2023 series call this number *alloc_zone*.
    pub refilled_pages: u64,
    /// Number of times that a page set gave blocks back. A drain in slices counts once.
    pub drains: u64,
    /// Number of pages that drains gave back.
    pub drained_pages: u64,
    /// Number of drains because of consecutive high-order frees. The tables of the 2023 series call these
    /// drains *free_high*.
    pub free_high_drains: u64,
    /// Number of pages that went directly between a zone and a request, without a page set.
    pub direct_pages: u64,
    /// Number of times that a zone's lock was taken: for a refill, for a slice of a drain, or for a block
    /// past the page sets.
    pub zone_lock_acquisitions: u64,
    /// The most pages that all page sets held together at one time.
    pub pcp_pages_peak: u64,
    /// Number of pages in page sets at the end.
    pub pcp_pages_end: u64,
    /// Number of pages in page sets after a minute without allocations and frees, which the replay simulates
    /// after the end.
    pub pcp_pages_idle: u64,
    /// 80 % intervals. [`INTERVAL_COVERAGE`](crate::INTERVAL_COVERAGE) says how often measured values were in
    /// 80 % intervals. `None` if the recording does not show its kernel's decisions, because the error of the
    /// replay is then unknown.
    pub interval: Option<Intervals>,
}

/// Intervals of a row's main values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervals {
    /// Interval of [`Outcome::refills`] + [`Outcome::drains`].
    pub visits: Interval,
    /// Interval of [`Outcome::zone_lock_acquisitions`].
    pub zone_lock_acquisitions: Interval,
    /// Interval of [`Outcome::refilled_pages`].
    pub refilled_pages: Interval,
    /// Interval of [`Outcome::drained_pages`].
    pub drained_pages: Interval,
}

/// The distances between the own row's counts and the recorded kernel's counts, as logarithms of ratios.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnDistance {
    pub(super) visits: f64,
    pub(super) refilled_pages: f64,
    pub(super) drained_pages: f64,
}

impl Outcome {
    /// Makes a row. Without an own distance, the row has no interval. `repeats` has the forecasts from the
    /// other recordings of the load.
    pub(super) fn new(
        candidate: &Candidate,
        kind: Kind,
        (forecast, own): (&Forecast, Option<OwnDistance>),
        repeats: &[(&Forecast, Option<OwnDistance>)],
    ) -> Self {
        let totals = &forecast.totals;
        let all: Vec<&Forecast> =
            std::iter::once(forecast).chain(repeats.iter().map(|(repeat, _)| *repeat)).collect();
        let basis = Basis {
            kind,
            asked_pages: all.iter().map(|forecast| forecast.totals.asked_pages).sum(),
            passed_pages: all.iter().map(|forecast| forecast.totals.passed_pages()).sum(),
        };
        let own: Option<Vec<OwnDistance>> =
            std::iter::once(own).chain(repeats.iter().map(|(_, own)| *own)).collect();
        let of = |value: fn(&Totals) -> u64, off: fn(&OwnDistance) -> f64, own: &[OwnDistance]| {
            let rows: Vec<u64> = all.iter().map(|forecast| value(&forecast.totals)).collect();
            let off = own.iter().map(off).fold(0.0, f64::max);
            let others: Vec<u64> =
                all.iter().flat_map(|forecast| forecast.others.iter().map(value)).collect();
            Interval::of(&rows, &others, basis.spread(off, &rows))
        };
        Self {
            policy: candidate.name(),
            is_recorded_kernel: kind == Kind::Recorded,
            allocs: totals.allocs,
            frees: totals.frees,
            pcp_hits: totals.pcp_allocs.saturating_sub(totals.refills),
            refills: totals.refills,
            refilled_pages: totals.refilled_pages,
            drains: totals.drains,
            drained_pages: totals.drained_pages,
            free_high_drains: totals.free_high_drains,
            direct_pages: totals.direct_pages,
            zone_lock_acquisitions: totals.zone_lock_acquisitions(),
            pcp_pages_peak: totals.held_peak(),
            pcp_pages_end: totals.held_now(),
            pcp_pages_idle: forecast.held_idle,
            interval: own.map(|own| Intervals {
                visits: of(Totals::visits, |own| own.visits, &own),
                zone_lock_acquisitions: of(Totals::zone_lock_acquisitions, |own| own.visits, &own),
                refilled_pages: of(|totals| totals.refilled_pages, |own| own.refilled_pages, &own),
                drained_pages: of(|totals| totals.drained_pages, |own| own.drained_pages, &own),
            }),
        }
    }

    /// Returns the number of zone visits: refills and drains.
    #[must_use]
    pub fn visits(&self) -> u64 {
        self.refills + self.drains
    }

    /// Returns the share of allocations that a page set served without its zone, in percent. Returns `None`
    /// if there were no allocations.
    #[must_use]
    pub fn hit_percent(&self) -> Option<f64> {
        (self.allocs > 0).then(|| 100.0 * self.pcp_hits as f64 / self.allocs as f64)
    }

    /// Returns the number of pages that left or entered a zone, divided by the number of times that a zone's
    /// lock was taken. `None` if no lock was taken.
    #[must_use]
    pub fn pages_per_acquisition(&self) -> Option<f64> {
        let moved = self.refilled_pages + self.drained_pages + self.direct_pages;
        (self.zone_lock_acquisitions > 0).then(|| moved as f64 / self.zone_lock_acquisitions as f64)
    }
}
