//! One pass over the zonelist: which zone serves a request, and whether its page set or its free lists do.

use core::sync::atomic::Ordering::Relaxed;

use super::PageAllocator;
use crate::buddy::FallbackMode;
use crate::error::AllocError;
use crate::event::{Event, emit};
use crate::frame::{FrameIndex, State};
use crate::pcp::{Pageset, PagesetState, Pressure};
use crate::platform::Platform;
use crate::policy::{BelowHigh, BoostConsumer};
use crate::request::{AllocFlags, Request};
use crate::stats::Counters;
use crate::zone::{Watermark, Zone, ZoneFlag};
use crate::{CpuId, MigrateType, NodeId, Pfn, ZoneKind};

/// A request with what stays the same over all passes.
pub(super) struct Walk<'r> {
    pub(super) cpu: CpuId,
    pub(super) request: &'r Request,
    /// The node whose zonelist is used.
    pub(super) node: NodeId,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Allocates a block and returns its first frame.
    ///
    /// ```
    /// use pageset_core::{Config, CpuId, NodeId, Order, PageAllocator, Platform, Request, Tables, ZoneConfig, ZoneKind};
    ///
    /// struct Host;
    /// impl Platform for Host {
    ///     type RawLock = parking_lot::RawMutex;
    ///     type Events = ();
    ///     fn events(&self) -> &() {
    ///         &()
    ///     }
    /// }
    ///
    /// // 256 MiB from frame 0 on, two CPUs.
    /// let frames = [0..65_536];
    /// let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..65_536, regions: &frames }];
    /// let config = Config::new(&zones, &[NodeId(0), NodeId(0)]);
    /// let allocator = PageAllocator::new(Host, &config, Tables::on_heap(&config)?)?;
    ///
    /// let order = Order::new(3).unwrap();
    /// let pfn = allocator.alloc(CpuId(0), &Request::new(order).movable())?;
    /// assert!(pfn.is_aligned(order));
    /// // Freed by another CPU than the one that allocated it; a second free is an error, not a disaster.
    /// allocator.free(CpuId(1), pfn, order)?;
    /// assert!(allocator.free(CpuId(1), pfn, order).is_err());
    /// assert_eq!(allocator.validate()?.allocated, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AllocError::OutOfMemory`] if no eligible zone has such a block above its watermark,
    /// [`AllocError::NoEligibleZone`] if none is eligible, [`AllocError::BadCpu`] for an unknown CPU,
    /// [`AllocError::BadType`] for a type that is not the caller's to choose.
    #[inline]
    pub fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        self.check_request(cpu, request)?;
        let walk = Walk { cpu, request, node: self.start_node(cpu, request)? };
        let flags = AllocFlags::fast(request) | self.avoid_fragmenting(&walk);
        let pfn = match self.walk(&walk, Watermark::Low, flags) {
            Some(pfn) => Ok(pfn),
            None => self.alloc_slow(&walk),
        };
        emit(self.platform.events(), cpu, || Event::MmPageAlloc {
            pfn: pfn.ok(),
            order: request.order,
            migratetype: request.migratetype,
        });
        pfn
    }

    /// Whether the allocator can look at a request at all.
    #[inline]
    pub(super) fn check_request(&self, cpu: CpuId, request: &Request) -> Result<(), AllocError> {
        if !self.is_known(cpu) {
            return Err(AllocError::BadCpu(cpu));
        }
        if !request.migratetype.is_mergeable() {
            return Err(AllocError::BadType(request.migratetype));
        }
        Ok(())
    }

    #[inline]
    fn start_node(&self, cpu: CpuId, request: &Request) -> Result<NodeId, AllocError> {
        use crate::NodeChoice::{Local, Only, Prefer};
        match request.nodes {
            Local => Ok(self.node_of(cpu)),
            Prefer(node) | Only(node) if node.index() < self.nodes => Ok(node),
            Prefer(_) | Only(_) => Err(AllocError::NoEligibleZone),
        }
    }

    /// Zones this request may use, best first. The first is the preferred one.
    #[inline]
    pub(super) fn eligible<'s>(
        &'s self,
        walk: &Walk<'s>,
    ) -> impl Iterator<Item = &'s Zone<'a, P>> + use<'a, 's, P> {
        let request = walk.request;
        let node = walk.node;
        self.zonelist(node).filter(move |zone| {
            zone.body.kind <= request.highest_zone
                && request.below.is_none_or(|limit| zone.body.span.pfns().end <= limit.0)
                && (!matches!(request.nodes, crate::NodeChoice::Only(_)) || zone.body.node == node)
        })
    }

    /// `NO_FRAGMENT`, if the preferred zone has a lower zone to spill to before it mixes pageblocks (spec §1.11).
    #[inline]
    fn avoid_fragmenting(&self, walk: &Walk<'_>) -> AllocFlags {
        let spills = self.eligible(walk).next().is_some_and(|preferred| {
            preferred.body.kind == ZoneKind::Normal
                && self.zones.iter().any(|zone| {
                    zone.body.kind == ZoneKind::Dma32
                        && (self.nodes == 1 || zone.body.node == preferred.body.node)
                })
        });
        if spills { AllocFlags::NO_FRAGMENT } else { AllocFlags::empty() }
    }

    /// One pass (spec §1.13).
    #[inline]
    pub(super) fn walk(&self, walk: &Walk<'_>, watermark: Watermark, flags: AllocFlags) -> Option<Pfn> {
        let preferred = self.eligible(walk).next()?;
        let mut flags = flags;
        'pass: loop {
            for zone in self.eligible(walk) {
                if flags.contains(AllocFlags::NO_FRAGMENT) && zone.body.node != preferred.body.node {
                    // Memory of this node in the wrong pageblock beats memory of another node.
                    flags -= AllocFlags::NO_FRAGMENT;
                    continue 'pass;
                }
                if !self.may_use(zone, walk, watermark, flags) {
                    continue;
                }
                if let Some(frame) = self.take_from_zone(zone, preferred, walk, flags) {
                    if flags.contains(AllocFlags::HIGH_ATOMIC) {
                        self.reserve_highatomic(zone, frame, walk);
                    }
                    return Some(zone.body.span.pfn(frame));
                }
            }
            if !flags.contains(AllocFlags::NO_FRAGMENT) {
                return None;
            }
            flags -= AllocFlags::NO_FRAGMENT;
        }
    }

    /// Watermark checks of one zone, and the detection of a zone below its high watermark (spec §2.9).
    #[inline]
    fn may_use(&self, zone: &Zone<'_, P>, walk: &Walk<'_>, watermark: Watermark, flags: AllocFlags) -> bool {
        let ok =
            |mark| zone.body.is_watermark_ok_fast(walk.request.order, mark, walk.request.highest_zone, flags);
        let below = zone.body.gauges.has(ZoneFlag::BelowHigh);
        let looks = match self.policy.tuning.map_or(BelowHigh::Ignored, |tuning| tuning.below_high) {
            BelowHigh::Ignored => false,
            BelowHigh::CheckOnce => !below,
            BelowHigh::CheckAlways => true,
        };
        if looks {
            if ok(Watermark::High) {
                return true;
            }
            if !below {
                zone.body.gauges.set(ZoneFlag::BelowHigh);
            }
        }
        ok(watermark) || flags.contains(AllocFlags::NO_WATERMARKS)
    }

    /// Takes a block from one zone: from this CPU's page set, or else from the free lists (spec §2.7).
    #[inline]
    fn take_from_zone(
        &self,
        zone: &Zone<'_, P>,
        preferred: &Zone<'_, P>,
        walk: &Walk<'_>,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let frame = if self.policy.lists.holds(walk.request.order) {
            self.take_cached(zone, preferred, walk, flags)
        } else {
            None
        };
        let frame = frame.or_else(|| self.take_direct(zone, preferred, walk, flags));
        if zone.body.gauges.has(ZoneFlag::BoostedWatermark) {
            self.consume_boost(zone, walk, flags);
        }
        frame
    }

    #[inline]
    fn take_cached(
        &self,
        zone: &Zone<'_, P>,
        preferred: &Zone<'_, P>,
        walk: &Walk<'_>,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let pageset = self.pageset(zone, walk.cpu);
        let taken = match flags.contains(AllocFlags::PCP_BUSY) {
            true => None,
            false => pageset.try_with(|state| {
                state.pcp.note_alloc(&self.policy);
                let frame = self.pop_or_refill(zone, pageset, state, walk, flags)?;
                state.counters.pcp_alloc += 1;
                self.count_alloc(&mut state.counters, zone, preferred, walk);
                Some(frame)
            }),
        };
        if taken.is_none() {
            zone.body.trylock_failures.fetch_add(1, Relaxed);
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
        walk: &Walk<'_>,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let (order, wanted) = (walk.request.order, self.wanted_type(zone, walk.request.migratetype));
        let list = self.policy.lists.list(order, wanted);
        let frames = &zone.body.frames;
        let frame = match state.pcp.pop(frames, list, order) {
            Some(frame) => frame,
            None => {
                let size = state.pcp.refill_size(&self.policy, pageset.limits(), pressure(zone), order);
                pageset.touch();
                zone.with_lock(&self.platform, walk.cpu, |zone| {
                    state.pcp.refill(zone, (list, order, wanted), size, flags, &mut state.counters);
                });
                state.pcp.pop(frames, list, order)?
            }
        };
        frames.set_state(frame, State::Allocated { order, movable: wanted == MigrateType::Movable });
        Some(frame)
    }

    /// Takes one block of the free lists under the zone's lock (spec §2.7.3).
    fn take_direct(
        &self,
        zone: &Zone<'_, P>,
        preferred: &Zone<'_, P>,
        walk: &Walk<'_>,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let (order, wanted) = (walk.request.order, self.wanted_type(zone, walk.request.migratetype));
        self.pageset(zone, walk.cpu).touch();
        zone.with_lock(&self.platform, walk.cpu, |locked| {
            let reserved = |locked: &mut crate::buddy::LockedZone<'_, _>, flag| {
                flags.intersects(flag).then(|| locked.take_smallest(order, MigrateType::HighAtomic)).flatten()
            };
            let frame = reserved(locked, AllocFlags::HIGH_ATOMIC)
                .or_else(|| locked.take(order, wanted, flags, &mut FallbackMode::default()))
                .or_else(|| reserved(locked, AllocFlags::OOM | AllocFlags::NON_BLOCK))?;
            locked.mark_allocated(frame, order, wanted);
            locked.buddy.stats.direct_alloc += 1;
            self.count_alloc(&mut locked.buddy.stats, zone, preferred, walk);
            Some(frame)
        })
    }

    /// With grouping by mobility off, every request is for unmovable memory (spec §1.6).
    #[inline]
    fn wanted_type(&self, zone: &Zone<'_, P>, migratetype: MigrateType) -> MigrateType {
        if zone.body.mobility_grouping.load(Relaxed) { migratetype } else { MigrateType::Unmovable }
    }

    #[inline]
    pub(super) fn count_alloc(
        &self,
        counters: &mut Counters,
        zone: &Zone<'_, P>,
        preferred: &Zone<'_, P>,
        walk: &Walk<'_>,
    ) {
        counters.pgalloc += u64::from(walk.request.order.frames());
        if zone.body.node == preferred.body.node {
            counters.numa_hit += 1;
        } else {
            counters.numa_miss += 1;
            preferred.body.numa_foreign.fetch_add(1, Relaxed);
        }
        if zone.body.node == self.node_of(walk.cpu) {
            counters.numa_local += 1;
        } else {
            counters.numa_other += 1;
        }
    }

    /// Keeps the pageblock of a block that an atomic request of high order got, wherever it came from (spec §1.12).
    #[cold]
    fn reserve_highatomic(&self, zone: &Zone<'_, P>, frame: FrameIndex, walk: &Walk<'_>) {
        zone.with_lock(&self.platform, walk.cpu, |locked| {
            locked.reserve_highatomic(frame, walk.request.order)
        });
    }

    #[cold]
    fn consume_boost(&self, zone: &Zone<'_, P>, walk: &Walk<'_>, flags: AllocFlags) {
        let consumes = match self.policy.buddy.boost_consumer {
            BoostConsumer::AnyRequest => true,
            BoostConsumer::KswapdRequest => flags.contains(AllocFlags::KSWAPD),
        };
        if consumes && zone.body.gauges.clear(ZoneFlag::BoostedWatermark) {
            self.wake_kswapd(zone, walk);
        }
    }

    pub(super) fn wake_kswapd(&self, zone: &Zone<'_, P>, walk: &Walk<'_>) {
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
