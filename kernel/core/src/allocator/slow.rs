//! The slow path: zones beyond the preferred one, and the attempts after a failed first pass (spec §1.13,
//! "slow path order"). This crate neither reclaims nor compacts memory. Events mark the points where a kernel
//! would wake the reclaimer or begin direct reclaim.

use super::PageAllocator;
use super::alloc::Walk;
use crate::error::AllocError;
use crate::event::{Event, emit};
use crate::frame::FrameIndex;
use crate::pcp::CpuZone;
use crate::platform::Platform;
use crate::policy::BoostConsumer;
use crate::request::{AllocFlags, RequestTraits};
use crate::zone::{Watermark, ZoneFlag};
use crate::{Order, Pfn};

/// Whether each zone keeps one pageblock of its reserve when reserved pageblocks return to ordinary use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unreserve {
    KeepOne,
    All,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Tries the request's other zones, after the preferred zone has failed. If no other zone serves the
    /// request either, and `flags` have `NO_FRAGMENT`, this function tries all zones again without
    /// `NO_FRAGMENT`.
    #[cold]
    pub(super) fn walk_on(
        &self,
        walk: &Walk<'_, 'a, P>,
        watermark: Watermark,
        mut flags: AllocFlags,
    ) -> Option<Pfn> {
        let mut zones_tried = 1;
        'pass: loop {
            for zone in self.zones_for(walk.request, walk.node).skip(zones_tried) {
                if flags.contains(AllocFlags::NO_FRAGMENT) && zone.body.node != walk.preferred.body.node {
                    // Prefer memory of the preferred zone's node, even in a pageblock of another type, to
                    // memory of another node.
                    flags -= AllocFlags::NO_FRAGMENT;
                    zones_tried = 0;
                    continue 'pass;
                }
                if let Some(pfn) = self.try_zone(zone, walk, watermark, flags) {
                    return Some(pfn);
                }
            }
            if !flags.contains(AllocFlags::NO_FRAGMENT) {
                return None;
            }
            flags -= AllocFlags::NO_FRAGMENT;
            zones_tried = 0;
        }
    }

    #[cold]
    pub(super) fn alloc_slow(&self, walk: &Walk<'_, 'a, P>) -> Result<Pfn, AllocError> {
        let flags = AllocFlags::slow(walk.request);
        if flags.contains(AllocFlags::KSWAPD) {
            let at = self.pagesets.at(walk.preferred, walk.cpu, &self.policy, &self.platform);
            at.wake_kswapd(walk.request.order);
        }
        if let Some(pfn) = self.walk(walk, Watermark::Min, flags) {
            return Ok(pfn);
        }
        // From this point on, a request that may use reserves uses the reserves in every attempt.
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

    /// Removes one pageblock with free frames from the high-order reserve of a zone that the request may use.
    /// Returns `false` if no pageblock was removed.
    fn unreserve(&self, walk: &Walk<'_, 'a, P>, how: Unreserve) -> bool {
        self.zones_for(walk.request, walk.node).any(|zone| {
            let reserved = zone.body.gauges.reserved_highatomic();
            let spared = how == Unreserve::KeepOne && reserved <= u64::from(crate::PAGEBLOCK_FRAMES);
            // Test for free frames, not for reserved pageblocks. After the reserve has ended, page sets may
            // still give frames back to the reserve's lists. So a zone without reserved pageblocks may have
            // free frames on the reserve's lists (spec §1.5).
            !spared
                && zone.body.gauges.free_highatomic() > 0
                && zone.with_lock(&self.platform, walk.cpu, |zone| {
                    zone.unreserve_highatomic(walk.request.migratetype)
                })
        })
    }
}

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Reserves the pageblock of a block that an atomic high-order request got (spec §1.12).
    #[cold]
    pub(super) fn reserve_highatomic(self, frame: FrameIndex, order: Order) {
        self.zone.with_lock(self.platform, self.cpu, |locked| locked.reserve_highatomic(frame, order));
    }

    /// Clears the mark of a zone with boosted watermarks, if the policy says that this kind of request clears
    /// the mark. A call that clears the mark also wakes the reclaimer.
    #[cold]
    pub(super) fn consume_boost(self, order: Order, flags: AllocFlags) {
        let consumes = match self.policy.buddy.boost_consumer {
            BoostConsumer::AnyRequest => true,
            BoostConsumer::KswapdRequest => flags.contains(AllocFlags::KSWAPD),
        };
        if consumes && self.zone.body.clear(ZoneFlag::BoostedWatermark) {
            self.wake_kswapd(order);
        }
    }

    pub(super) fn wake_kswapd(self, order: Order) {
        let zone = self.zone.body.id;
        emit(self.platform.events(), self.cpu, || Event::WakeKswapd { zone, order });
    }
}
