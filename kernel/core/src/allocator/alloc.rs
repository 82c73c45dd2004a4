//! Allocation: chooses the zone, then takes the block from this CPU's page set or from the free lists.

use core::sync::atomic::Ordering::Relaxed;

use super::PageAllocator;
use crate::buddy::FallbackMode;
use crate::error::AllocError;
use crate::event::{Event, FoundAt, emit};
use crate::frame::FrameIndex;
use crate::pcp::{CpuZone, ListIndex};
use crate::platform::Platform;
use crate::policy::BelowHigh;
use crate::request::{AllocFlags, NodeChoice, Request, Wanted};
use crate::stats::Counters;
use crate::zone::{LockedZone, Watermark, Zone, ZoneFlag};
use crate::{CpuId, MigrateType, NodeId, Pfn};

/// The values of a request that stay the same in all its passes over the zones.
pub(super) struct Walk<'w, 'a, P: Platform> {
    pub(super) cpu: CpuId,
    pub(super) request: &'w Request,
    /// The node whose zonelist the request follows.
    pub(super) node: NodeId,
    /// The node of the CPU that allocates.
    local_node: NodeId,
    /// The first zone in the node's zonelist that the request may use.
    pub(super) preferred: &'w Zone<'a, P>,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Allocates a block and returns its first frame.
    ///
    /// ```
    /// use pageset_core::{Config, CpuId, NodeId, Order, PageAllocator, Platform, Request, Tables};
    /// use pageset_core::{ZoneConfig, ZoneKind};
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
    /// let (kind, node) = (ZoneKind::Normal, NodeId(0));
    /// let zones = [ZoneConfig { kind, node, span: 0..65_536, regions: &frames }];
    /// let config = Config::new(&zones, &[NodeId(0), NodeId(0)]);
    /// let allocator = PageAllocator::new(Host, &config, Tables::on_heap(&config)?)?;
    ///
    /// let order = Order::new(3).unwrap();
    /// let pfn = allocator.alloc(CpuId(0), &Request::new(order).movable())?;
    /// assert!(pfn.is_aligned(order));
    /// // Another CPU may free the block. A second free is an error and changes nothing.
    /// allocator.free(CpuId(1), pfn, order)?;
    /// assert!(allocator.free(CpuId(1), pfn, order).is_err());
    /// assert_eq!(allocator.validate()?.allocated, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`AllocError::OutOfMemory`] if no eligible zone has a block of this order above its watermark,
    /// [`AllocError::NoEligibleZone`] if the request's nodes and limits exclude every zone,
    /// [`AllocError::BadCpu`] for an unknown CPU, [`AllocError::BadType`] for a type that only the allocator
    /// may choose.
    #[inline]
    pub fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        self.check_request(cpu, request)?;
        let ended = |pfn| {
            emit(self.platform.events(), cpu, || Event::MmPageAlloc {
                pfn,
                order: request.order,
                migratetype: request.migratetype,
            });
        };
        let outcome = match self.start(cpu, request) {
            Ok(walk) => {
                // Prefer a block of a lower zone to a block that mixes migratetypes in a pageblock (spec
                // §1.11).
                let avoid = if walk.preferred.body.spills_lower {
                    AllocFlags::NO_FRAGMENT
                } else {
                    AllocFlags::empty()
                };
                if let Some(pfn) = self.walk(&walk, Watermark::Low, AllocFlags::fast(request) | avoid) {
                    ended(Some(pfn));
                    return Ok(pfn);
                }
                self.alloc_slow(&walk)
            }
            Err(error) => Err(error),
        };
        ended(outcome.ok());
        outcome
    }

    /// Rejects a request that names an unknown CPU, or a migratetype that only the allocator may choose.
    #[inline]
    pub(super) fn check_request(&self, cpu: CpuId, request: &Request) -> Result<(), AllocError> {
        if cpu.index() >= self.cpus.len() {
            return Err(AllocError::BadCpu(cpu));
        }
        if !request.migratetype.is_mergeable() {
            return Err(AllocError::BadType(request.migratetype));
        }
        Ok(())
    }

    /// Finds the node and zone where a request starts.
    #[inline]
    pub(super) fn start<'w>(
        &'w self,
        cpu: CpuId,
        request: &'w Request,
    ) -> Result<Walk<'w, 'a, P>, AllocError> {
        let local_node = self.cpus[cpu.index()].node();
        let node = match request.nodes {
            NodeChoice::Local => local_node,
            NodeChoice::Prefer(node) | NodeChoice::Only(node) if node.index() < self.nodes => node,
            NodeChoice::Prefer(_) | NodeChoice::Only(_) => return Err(AllocError::NoEligibleZone),
        };
        let preferred = self.zones_for(request, node).next().ok_or(AllocError::NoEligibleZone)?;
        Ok(Walk { cpu, request, node, local_node, preferred })
    }

    /// The zones that a request may use, in the order of `node`'s zonelist. The first zone is the preferred
    /// zone.
    #[inline]
    pub(super) fn zones_for<'w>(
        &'w self,
        request: &'w Request,
        node: NodeId,
    ) -> impl Iterator<Item = &'w Zone<'a, P>> + use<'a, 'w, P> {
        let zones = self.zones.len();
        let zonelist = &self.zonelists[node.index() * zones..][..zones];
        zonelist.iter().map(|id| &self.zones[id.index()]).filter(move |zone| {
            zone.body.kind <= request.highest_zone
                && request.zones_below.is_none_or(|limit| zone.body.span.pfns().end <= limit.0)
                && (!matches!(request.nodes, NodeChoice::Only(_)) || zone.body.node == node)
        })
    }

    /// Tries the zones that the request may use, one after the other, until a zone gives a block. A zone may
    /// serve the request if the zone's free memory stays above the given watermark, or if `flags` ignore
    /// watermarks (spec §1.13).
    #[inline]
    pub(super) fn walk(
        &self,
        walk: &Walk<'_, 'a, P>,
        watermark: Watermark,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        // Try the preferred zone separately, because the preferred zone serves most requests.
        match self.try_zone(walk.preferred, walk, watermark, flags) {
            Some(pfn) => Some(pfn),
            None => self.walk_on(walk, watermark, flags),
        }
    }

    /// Takes a block for the request from one zone. Returns `None` if the zone's watermark and `flags` forbid
    /// the allocation, or if the zone has no block for the request.
    #[inline]
    pub(super) fn try_zone(
        &self,
        zone: &Zone<'a, P>,
        walk: &Walk<'_, 'a, P>,
        watermark: Watermark,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        let below_high = self.policy.tuning.map_or(BelowHigh::Ignored, |tuning| tuning.below_high);
        if !zone.body.may_serve(walk.request, watermark, flags, below_high) {
            return None;
        }
        let at = self.pagesets.at(zone, walk.cpu, &self.policy, &self.platform);
        let frame = at.take(walk, flags)?;
        if flags.contains(AllocFlags::HIGH_ATOMIC) {
            at.reserve_highatomic(frame, walk.request.order);
        }
        Some(zone.body.span.pfn(frame))
    }
}

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Takes a block from this CPU's page set, or else from the free lists (spec §2.7).
    #[inline]
    fn take(self, walk: &Walk<'_, '_, P>, flags: AllocFlags) -> Option<FrameIndex> {
        let wanted = self.wanted(walk.request);
        let frame = match self.policy.lists.list(wanted.order, wanted.migratetype) {
            Some(list) => self.take_cached(walk, list, wanted, flags),
            None => None,
        };
        let frame = frame.or_else(|| self.take_direct(walk, wanted, flags));
        if self.zone.body.has(ZoneFlag::BoostedWatermark) {
            self.consume_boost(walk.request.order, flags);
        }
        frame
    }

    /// The order and type of the block to take from this zone. If the zone does not group pageblocks by
    /// mobility, every request takes unmovable memory (spec §1.6).
    #[inline]
    pub(super) fn wanted(self, request: &Request) -> Wanted {
        let is_grouped = self.zone.body.mobility_grouping.load(Relaxed);
        let migratetype = if is_grouped { request.migratetype } else { MigrateType::Unmovable };
        Wanted { order: request.order, migratetype }
    }

    #[inline]
    fn take_cached(
        self,
        walk: &Walk<'_, '_, P>,
        list: ListIndex,
        wanted: Wanted,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let taken = match flags.contains(AllocFlags::BYPASS_PCP) {
            true => None,
            false => self.pageset.try_with(|state| {
                let frame = self.pop_or_refill(state, list, wanted, flags);
                state.pcp.note_alloc(self.policy);
                frame.inspect(|_| {
                    state.counters.pcp_alloc += 1;
                    walk.count(&mut state.counters, self.zone);
                })
            }),
        };
        if taken.is_none() {
            self.zone.body.trylock_failures.add_one();
        }
        taken.flatten()
    }

    /// Takes one block from the free lists under the zone's lock (spec §2.7.3).
    fn take_direct(self, walk: &Walk<'_, '_, P>, wanted: Wanted, flags: AllocFlags) -> Option<FrameIndex> {
        let order = wanted.order;
        self.pageset.touch();
        self.zone.with_lock(self.platform, self.cpu, |locked| {
            let reserved = |locked: &mut LockedZone<'_, _>, flag| {
                flags.intersects(flag).then(|| locked.take_smallest(order, MigrateType::HighAtomic)).flatten()
            };
            let frame = loop {
                let frame = reserved(locked, AllocFlags::HIGH_ATOMIC)
                    .or_else(|| locked.take(wanted, flags, &mut FallbackMode::default()))
                    .or_else(|| reserved(locked, AllocFlags::OOM | AllocFlags::NON_BLOCK))?;
                if locked.is_sound(frame, order, FoundAt::DirectAlloc) {
                    break frame;
                }
            };
            locked.body.frames.mark_allocated(frame, order, wanted.migratetype);
            locked.buddy.stats.direct_alloc += 1;
            locked.buddy.stats.direct_pages += u64::from(order.frames());
            walk.count(&mut locked.buddy.stats, self.zone);
            Some(frame)
        })
    }
}

impl<P: Platform> Walk<'_, '_, P> {
    /// Counts an allocation that `zone` served.
    #[inline]
    pub(super) fn count(&self, counters: &mut Counters, zone: &Zone<'_, P>) {
        counters.pgalloc += u64::from(self.request.order.frames());
        if zone.body.node == self.preferred.body.node {
            counters.numa_hit += 1;
        } else {
            counters.numa_miss += 1;
            self.preferred.body.numa_foreign.add_one();
        }
        if zone.body.node == self.local_node {
            counters.numa_local += 1;
        } else {
            counters.numa_other += 1;
        }
    }
}
