//! A page set behind its lock, with the limits that other CPUs may change.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

use super::{Limits, ListScheme, Pcp};
use crate::platform::{Lock, Platform};
use crate::stats::Counters;

/// One CPU's page set of one zone, or an empty place for one. `const`-constructible.
///
/// Aligned so that two CPUs' page sets share no cache line, nor a pair that is fetched together.
#[repr(align(128))]
pub struct Pageset<P: Platform> {
    // Written without the lock when a zone's limits change; a CPU picks them up at its next slow path (spec §2.4).
    batch: AtomicI32,
    high_min: AtomicI32,
    high_max: AtomicI32,
    /// Whether this CPU changed the zone's free pages since its last tick.
    touched: AtomicBool,
    state: Lock<P, PagesetState>,
}

/// What a page set's lock protects.
#[derive(Debug)]
pub(crate) struct PagesetState {
    pub(crate) pcp: Pcp,
    pub(crate) counters: Counters,
}

impl<P: Platform> Pageset<P> {
    /// The boot page set: it caches nothing (spec §2.6).
    #[must_use]
    pub const fn new() -> Self {
        Self {
            batch: AtomicI32::new(1),
            high_min: AtomicI32::new(0),
            high_max: AtomicI32::new(0),
            touched: AtomicBool::new(false),
            state: Lock::<P, _>::new(PagesetState { pcp: Pcp::new(), counters: Counters::ZERO }),
        }
    }

    pub(crate) fn set_scheme(&mut self, scheme: ListScheme) {
        self.state.get_mut().pcp = Pcp::with_scheme(scheme);
    }

    #[inline]
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            batch: self.batch.load(Relaxed),
            high_min: self.high_min.load(Relaxed),
            high_max: self.high_max.load(Relaxed),
        }
    }

    pub(crate) fn set_limits(&self, limits: Limits) {
        self.batch.store(limits.batch, Relaxed);
        self.high_min.store(limits.high_min, Relaxed);
        self.high_max.store(limits.high_max, Relaxed);
    }

    #[inline]
    pub(crate) fn touch(&self) {
        self.touched.store(true, Relaxed);
    }

    pub(crate) fn take_touched(&self) -> bool {
        self.touched.swap(false, Relaxed)
    }

    /// Runs `work` with the lock held, or not at all if somebody else holds it.
    #[inline]
    pub(crate) fn try_with<T>(&self, work: impl FnOnce(&mut PagesetState) -> T) -> Option<T> {
        self.state.try_lock().map(|mut state| {
            let outcome = work(&mut state);
            state.pcp.assert_consistent();
            outcome
        })
    }

    /// Runs `work` with the lock held.
    #[inline]
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut PagesetState) -> T) -> T {
        let mut state = self.state.lock();
        let outcome = work(&mut state);
        state.pcp.assert_consistent();
        outcome
    }
}

impl<P: Platform> Default for Pageset<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> fmt::Debug for Pageset<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pageset").field("limits", &self.limits()).finish_non_exhaustive()
    }
}
