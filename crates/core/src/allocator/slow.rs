//! What to try when the first pass found nothing (spec §1.13, "slow path order"). Reclaim and compaction are the
//! host's: their places are events.

use super::PageAllocator;
use super::walk::Walk;
use crate::Pfn;
use crate::error::AllocError;
use crate::event::{Event, emit};
use crate::platform::Platform;
use crate::request::{AllocFlags, RequestTraits};
use crate::zone::Watermark;

/// Whether one reserved pageblock per zone stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unreserve {
    KeepOne,
    All,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    #[cold]
    pub(super) fn alloc_slow(&self, walk: &Walk<'_, 'a, P>) -> Result<Pfn, AllocError> {
        let flags = AllocFlags::slow(walk.request);
        if flags.contains(AllocFlags::KSWAPD) {
            self.wake_kswapd(walk.preferred, walk);
        }
        if let Some(pfn) = self.walk(walk, Watermark::Min, flags) {
            return Ok(pfn);
        }
        // A request that may use reserves uses them from here on, also for what the last resorts bring.
        let flags = flags.reserves(walk.request).unwrap_or(flags);
        let again = || self.walk(walk, Watermark::Min, flags);
        again()
            .or_else(|| {
                if !walk.request.traits.contains(RequestTraits::MAY_WAIT) {
                    return None;
                }
                self.note_stall(walk);
                again()
                    .or_else(|| {
                        self.unreserve(walk, Unreserve::KeepOne);
                        self.drain_every_pageset(walk.cpu);
                        again()
                    })
                    .or_else(|| if self.unreserve(walk, Unreserve::All) { again() } else { None })
            })
            .ok_or(AllocError::OutOfMemory { order: walk.request.order })
    }

    fn note_stall(&self, walk: &Walk<'_, 'a, P>) {
        walk.preferred.body.stalls.add_one();
        emit(self.platform.events(), walk.cpu, || Event::DirectReclaim {
            node: walk.node,
            order: walk.request.order,
        });
    }

    /// Gives one reserved pageblock back to ordinary use. `false` if there was none to give.
    fn unreserve(&self, walk: &Walk<'_, 'a, P>, how: Unreserve) -> bool {
        self.eligible(walk).any(|zone| {
            let reserved = zone.body.gauges.reserved_highatomic();
            let spared = how == Unreserve::KeepOne && reserved <= u64::from(crate::PAGEBLOCK_FRAMES);
            !spared
                && reserved > 0
                && zone.with_lock(&self.platform, walk.cpu, |zone| {
                    zone.unreserve_highatomic(walk.request.migratetype)
                })
        })
    }
}
