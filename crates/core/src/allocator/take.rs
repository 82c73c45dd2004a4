//! Taking a block from one zone: from this CPU's page set, or from the free lists.

use core::sync::atomic::Ordering::Relaxed;

use super::PageAllocator;
use super::walk::Walk;
use crate::buddy::FallbackMode;
use crate::event::{Event, FoundAt, emit};
use crate::frame::{FrameIndex, State};
use crate::pcp::{ListIndex, Pageset, PagesetState, Pressure};
use crate::platform::Platform;
use crate::policy::BoostConsumer;
use crate::request::AllocFlags;
use crate::stats::Counters;
use crate::zone::{Zone, ZoneFlag};
use crate::{CpuId, MigrateType, Order};

impl<P: Platform> PageAllocator<'_, P> {
    /// Takes a block from one zone: from this CPU's page set, or else from the free lists (spec §2.7).
    #[inline]
    pub(super) fn take_from_zone(
        &self,
        zone: &Zone<'_, P>,
        walk: &Walk<'_, '_, P>,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let frame = if self.policy.lists.holds(walk.request.order) {
            self.take_cached(zone, walk, flags)
        } else {
            None
        };
        let frame = frame.or_else(|| self.take_direct(zone, walk, flags));
        if zone.body.gauges.has(ZoneFlag::BoostedWatermark) {
            self.consume_boost(zone, walk, flags);
        }
        frame
    }

    #[inline]
    fn take_cached(
        &self,
        zone: &Zone<'_, P>,
        walk: &Walk<'_, '_, P>,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let pageset = self.pageset(zone, walk.cpu);
        let taken = match flags.contains(AllocFlags::PCP_BUSY) {
            true => None,
            false => pageset.try_with(|state| {
                state.pcp.note_alloc(&self.policy);
                let frame = self.pop_or_refill(zone, pageset, state, walk, flags)?;
                state.counters.pcp_alloc += 1;
                self.count_alloc(&mut state.counters, zone, walk);
                Some(frame)
            }),
        };
        if taken.is_none() {
            zone.body.trylock_failures.add_one();
        }
        taken.flatten()
    }

    /// Takes one block of this page set, refilling its list if it is empty (spec §2.7.1).
    #[inline]
    pub(super) fn pop_or_refill(
        &self,
        zone: &Zone<'_, P>,
        pageset: &Pageset<P>,
        state: &mut PagesetState,
        walk: &Walk<'_, '_, P>,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let (order, wanted) = (walk.request.order, self.wanted_type(zone, walk.request.migratetype));
        let list = self.policy.lists.list_of_held(order, wanted);
        let frames = &zone.body.frames;
        loop {
            let frame = match state.pcp.pop(frames, list, order) {
                Some(frame) => frame,
                None => {
                    self.refill(zone, pageset, state, walk.cpu, (list, order, wanted), flags);
                    state.pcp.pop(frames, list, order)?
                }
            };
            if matches!(frames.state(frame), State::Cached { .. }) {
                frames.set_state(frame, State::Allocated { order, movable: wanted == MigrateType::Movable });
                return Some(frame);
            }
            self.leak_cached(zone, state, walk, frame);
        }
    }

    /// Fetches blocks for an empty list.
    #[cold]
    fn refill(
        &self,
        zone: &Zone<'_, P>,
        pageset: &Pageset<P>,
        state: &mut PagesetState,
        cpu: CpuId,
        list: (ListIndex, Order, MigrateType),
        flags: AllocFlags,
    ) {
        let size = state.pcp.refill_size(&self.policy, pageset.limits(), pressure(zone), list.1);
        pageset.touch();
        zone.with_lock(&self.platform, cpu, |zone| {
            state.pcp.refill(zone, list, size, flags, &mut state.counters);
        });
    }

    /// Puts a block that a page set held out of service; its count went down with it (spec §7).
    #[cold]
    fn leak_cached(
        &self,
        zone: &Zone<'_, P>,
        state: &mut PagesetState,
        walk: &Walk<'_, '_, P>,
        frame: FrameIndex,
    ) {
        let order = walk.request.order;
        zone.body.frames.set_state(frame, State::Leaked { order });
        state.counters.bad_pages += 1;
        emit(self.platform.events(), walk.cpu, || Event::BadPage {
            pfn: zone.body.span.pfn(frame),
            order,
            found: FoundAt::Alloc,
        });
    }

    /// Takes one block of the free lists under the zone's lock (spec §2.7.3).
    fn take_direct(
        &self,
        zone: &Zone<'_, P>,
        walk: &Walk<'_, '_, P>,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let (order, wanted) = (walk.request.order, self.wanted_type(zone, walk.request.migratetype));
        self.pageset(zone, walk.cpu).touch();
        zone.with_lock(&self.platform, walk.cpu, |locked| {
            let reserved = |locked: &mut crate::buddy::LockedZone<'_, _>, flag| {
                flags.intersects(flag).then(|| locked.take_smallest(order, MigrateType::HighAtomic)).flatten()
            };
            let frame = loop {
                let frame = reserved(locked, AllocFlags::HIGH_ATOMIC)
                    .or_else(|| locked.take(order, wanted, flags, &mut FallbackMode::default()))
                    .or_else(|| reserved(locked, AllocFlags::OOM | AllocFlags::NON_BLOCK))?;
                if locked.is_sound(frame, order, FoundAt::DirectAlloc) {
                    break frame;
                }
            };
            locked.mark_allocated(frame, order, wanted);
            locked.buddy.stats.direct_alloc += 1;
            locked.buddy.stats.direct_pages += u64::from(order.frames());
            self.count_alloc(&mut locked.buddy.stats, zone, walk);
            Some(frame)
        })
    }

    /// With grouping by mobility off, every request is for unmovable memory (spec §1.6).
    #[inline]
    fn wanted_type(&self, zone: &Zone<'_, P>, migratetype: MigrateType) -> MigrateType {
        if zone.body.mobility_grouping.load(Relaxed) { migratetype } else { MigrateType::Unmovable }
    }

    #[inline]
    pub(super) fn count_alloc(&self, counters: &mut Counters, zone: &Zone<'_, P>, walk: &Walk<'_, '_, P>) {
        counters.pgalloc += u64::from(walk.request.order.frames());
        if zone.body.node == walk.preferred.body.node {
            counters.numa_hit += 1;
        } else {
            counters.numa_miss += 1;
            walk.preferred.body.numa_foreign.add_one();
        }
        if zone.body.node == self.node_of(walk.cpu) {
            counters.numa_local += 1;
        } else {
            counters.numa_other += 1;
        }
    }

    /// Keeps the pageblock of a block that an atomic request of high order got, wherever it came from (spec §1.12).
    #[cold]
    pub(super) fn reserve_highatomic(&self, zone: &Zone<'_, P>, frame: FrameIndex, walk: &Walk<'_, '_, P>) {
        zone.with_lock(&self.platform, walk.cpu, |locked| {
            locked.reserve_highatomic(frame, walk.request.order)
        });
    }

    #[cold]
    fn consume_boost(&self, zone: &Zone<'_, P>, walk: &Walk<'_, '_, P>, flags: AllocFlags) {
        let consumes = match self.policy.buddy.boost_consumer {
            BoostConsumer::AnyRequest => true,
            BoostConsumer::KswapdRequest => flags.contains(AllocFlags::KSWAPD),
        };
        if consumes && zone.body.gauges.clear(ZoneFlag::BoostedWatermark) {
            self.wake_kswapd(zone, walk);
        }
    }

    pub(super) fn wake_kswapd(&self, zone: &Zone<'_, P>, walk: &Walk<'_, '_, P>) {
        emit(self.platform.events(), walk.cpu, || Event::WakeKswapd {
            zone: zone.body.id,
            order: walk.request.order,
        });
    }
}

/// What a zone's flags say now.
#[inline]
pub(super) fn pressure<P: Platform>(zone: &Zone<'_, P>) -> Pressure {
    Pressure {
        reclaim_active: zone.body.gauges.has(ZoneFlag::ReclaimActive),
        below_high: zone.body.gauges.has(ZoneFlag::BelowHigh),
    }
}
