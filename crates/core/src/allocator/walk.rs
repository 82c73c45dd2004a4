//! Allocation: one pass over the zonelist decides which zone serves a request.

use super::PageAllocator;
use crate::error::AllocError;
use crate::event::{Event, emit};
use crate::platform::Platform;
use crate::policy::BelowHigh;
use crate::request::{AllocFlags, NodeChoice, Request};
use crate::zone::{Watermark, Zone, ZoneFlag};
use crate::{CpuId, NodeId, Pfn};

/// A request with what stays the same over all passes.
pub(super) struct Walk<'w, 'a, P: Platform> {
    pub(super) cpu: CpuId,
    pub(super) request: &'w Request,
    /// The node whose zonelist is used.
    pub(super) node: NodeId,
    /// The best zone that the request may use.
    pub(super) preferred: &'w Zone<'a, P>,
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
        let ended = |pfn| {
            emit(self.platform.events(), cpu, || Event::MmPageAlloc {
                pfn,
                order: request.order,
                migratetype: request.migratetype,
            });
        };
        let outcome = match self.start(cpu, request) {
            Ok(walk) => {
                let flags = AllocFlags::fast(request) | self.avoid_fragmenting(&walk);
                if let Some(pfn) = self.walk(&walk, Watermark::Low, flags) {
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

    /// Finds out where a request begins to look.
    #[inline]
    pub(super) fn start<'w>(
        &'w self,
        cpu: CpuId,
        request: &'w Request,
    ) -> Result<Walk<'w, 'a, P>, AllocError> {
        let node = match request.nodes {
            NodeChoice::Local => self.node_of(cpu),
            NodeChoice::Prefer(node) | NodeChoice::Only(node) if node.index() < self.nodes => node,
            NodeChoice::Prefer(_) | NodeChoice::Only(_) => return Err(AllocError::NoEligibleZone),
        };
        let preferred = self.zones_for(request, node).next().ok_or(AllocError::NoEligibleZone)?;
        Ok(Walk { cpu, request, node, preferred })
    }

    #[inline]
    fn zones_for<'w>(
        &'w self,
        request: &'w Request,
        node: NodeId,
    ) -> impl Iterator<Item = &'w Zone<'a, P>> + use<'a, 'w, P> {
        self.zonelist(node).filter(move |zone| {
            zone.body.kind <= request.highest_zone
                && request.below.is_none_or(|limit| zone.body.span.pfns().end <= limit.0)
                && (!matches!(request.nodes, NodeChoice::Only(_)) || zone.body.node == node)
        })
    }

    /// Zones this request may use, best first. The first is the preferred one.
    #[inline]
    pub(super) fn eligible<'w>(
        &'w self,
        walk: &Walk<'w, 'a, P>,
    ) -> impl Iterator<Item = &'w Zone<'a, P>> + use<'a, 'w, P> {
        self.zones_for(walk.request, walk.node)
    }

    /// `NO_FRAGMENT`, if the preferred zone has a lower zone to spill to before it mixes pageblocks (spec §1.11).
    #[inline]
    fn avoid_fragmenting(&self, walk: &Walk<'_, 'a, P>) -> AllocFlags {
        if walk.preferred.body.spills_lower { AllocFlags::NO_FRAGMENT } else { AllocFlags::empty() }
    }

    /// One pass (spec §1.13).
    #[inline]
    pub(super) fn walk(
        &self,
        walk: &Walk<'_, 'a, P>,
        watermark: Watermark,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        // Nearly always the preferred zone serves.
        match self.try_zone(walk.preferred, walk, watermark, flags) {
            Some(pfn) => Some(pfn),
            None => self.walk_on(walk, watermark, flags),
        }
    }

    /// The rest of a pass, behind the preferred zone.
    #[cold]
    fn walk_on(&self, walk: &Walk<'_, 'a, P>, watermark: Watermark, mut flags: AllocFlags) -> Option<Pfn> {
        let mut zones_tried = 1;
        'pass: loop {
            for zone in self.eligible(walk).skip(zones_tried) {
                if flags.contains(AllocFlags::NO_FRAGMENT) && zone.body.node != walk.preferred.body.node {
                    // Memory of this node in the wrong pageblock beats memory of another node.
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

    /// Serves a request from one zone, if its watermark allows.
    #[inline]
    fn try_zone(
        &self,
        zone: &Zone<'a, P>,
        walk: &Walk<'_, 'a, P>,
        watermark: Watermark,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        if !self.may_use(zone, walk, watermark, flags) {
            return None;
        }
        let frame = self.take_from_zone(zone, walk, flags)?;
        if flags.contains(AllocFlags::HIGH_ATOMIC) {
            self.reserve_highatomic(zone, frame, walk);
        }
        Some(zone.body.span.pfn(frame))
    }

    /// Watermark checks of one zone, and the detection of a zone below its high watermark (spec §2.9).
    #[inline]
    fn may_use(
        &self,
        zone: &Zone<'a, P>,
        walk: &Walk<'_, 'a, P>,
        watermark: Watermark,
        flags: AllocFlags,
    ) -> bool {
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
}
