//! What to try when the first pass found nothing (spec §1.13, "slow path order"). Reclaim and compaction are the
//! host's: their places are events.

use super::PageAllocator;
use super::walk::Walk;
use crate::Pfn;
use crate::error::AllocError;
use crate::event::{Event, emit};
use crate::platform::Platform;
use crate::request::{AllocFlags, RequestTraits};
use crate::zone::{Watermark, Zone};

/// Whether one reserved pageblock per zone stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unreserve {
    KeepOne,
    All,
}

impl<P: Platform> PageAllocator<'_, P> {
    #[cold]
    pub(super) fn alloc_slow(&self, walk: &Walk<'_>) -> Result<Pfn, AllocError> {
        let Some(preferred) = self.eligible(walk).next() else { return Err(AllocError::NoEligibleZone) };
        let flags = AllocFlags::slow(walk.request);
        if flags.contains(AllocFlags::KSWAPD) {
            self.wake_kswapd(preferred, walk);
        }
        let again = || self.walk(walk, Watermark::Min, flags);
        again()
            .or_else(|| self.walk(walk, Watermark::Min, flags.reserves(walk.request)?))
            .or_else(|| {
                if !walk.request.traits.contains(RequestTraits::MAY_WAIT) {
                    return None;
                }
                self.note_stall(preferred, walk);
                again()
                    .or_else(|| {
                        self.unreserve(walk, Unreserve::KeepOne);
                        self.drain_all(walk.cpu);
                        again()
                    })
                    .or_else(|| if self.unreserve(walk, Unreserve::All) { again() } else { None })
            })
            .ok_or(AllocError::OutOfMemory { order: walk.request.order })
    }

    fn note_stall(&self, preferred: &Zone<'_, P>, walk: &Walk<'_>) {
        self.pageset(preferred, walk.cpu).with(|state| state.counters.allocstall += 1);
        emit(self.platform.events(), walk.cpu, || Event::DirectReclaim {
            node: walk.node,
            order: walk.request.order,
        });
    }

    /// Gives one reserved pageblock back to ordinary use. `false` if there was none to give.
    fn unreserve(&self, walk: &Walk<'_>, how: Unreserve) -> bool {
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
