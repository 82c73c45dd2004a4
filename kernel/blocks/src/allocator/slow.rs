//! Serves an allocation if the CPU's pageblock has no suitable block. Tries the zones, and then their
//! highatomic reserves.

use core::cell::Cell;
use core::slice;

use pageset_core::{
    AllocError, CpuId, NodeChoice, NodeId, Order, Pfn, Request, RequestTraits, Watermark, ZoneId,
};

use super::BlockAllocator;
use super::highatomic::{cannot_wait, is_highatomic};
use super::needy::{Highatomic, Needy};
use crate::access::Access;
use crate::cpu_share::count;
use crate::ids::FrameId;

impl<A: Access> BlockAllocator<'_, A> {
    /// Allocates from any zone. Tries the CPU's own pageblock first, unless `is_own_tried`.
    #[cold]
    #[inline(never)]
    pub(super) fn alloc_slow(
        &self,
        cpu: CpuId,
        request: &Request,
        is_own_tried: bool,
    ) -> Result<Pfn, AllocError> {
        if !self.is_known(cpu) {
            return Err(AllocError::BadCpu(cpu));
        }
        if !request.migratetype.is_mergeable() {
            return Err(AllocError::BadType(request.migratetype));
        }
        let node = self.node_for(cpu, request).ok_or(AllocError::NoEligibleZone)?;
        let zones = || self.zones_for(request, node);
        let needy = |zone, highatomic| self.needy(zone, cpu, request, highatomic);
        let first = needy(zones().next().ok_or(AllocError::NoEligibleZone)?, Highatomic::Closed);
        first.share.activity.note::<A>();
        let is_below_low = Cell::new(false);
        let above_low = |zone| {
            let needy = needy(zone, Highatomic::Closed);
            if self.has_room(needy, request, Watermark::Low) {
                return self.take_in_zone(needy);
            }
            is_below_low.set(true);
            count::<A>(&needy.share.counters.below_low);
            None
        };
        let left = if is_own_tried { None } else { self.take_from_own_in_zone(first) };
        let found = left
            .or_else(|| zones().find_map(above_low))
            .or_else(|| self.take_above_min(cpu, request, is_below_low.get(), zones))
            .or_else(|| self.open_highatomic_reserves(cpu, request, zones));
        let Some((zone, id)) = found else {
            count::<A>(&first.share.counters.failed);
            return Err(AllocError::OutOfMemory { order: request.order });
        };
        Ok(self.zones[zone.index()].pfn(id))
    }

    pub(super) fn node_for(&self, cpu: CpuId, request: &Request) -> Option<NodeId> {
        let node = match request.nodes {
            NodeChoice::Local => self.homes[cpu.index()].node,
            NodeChoice::Prefer(node) | NodeChoice::Only(node) => node,
        };
        (node.index() < self.nodes()).then_some(node)
    }

    /// The zones that a request may use, in the order of the zonelist of `node`.
    pub(super) fn zones_for<'z>(
        &'z self,
        request: &'z Request,
        node: NodeId,
    ) -> impl Iterator<Item = ZoneId> {
        let mut rest = self.zonelists[node.index() * self.zones.len()..][..self.zones.len()].iter();
        core::iter::from_fn(move || self.next_zone(&mut rest, request, node))
    }

    /// The next zone of a zonelist that a request may use. This code is one function, because a kernel would
    /// otherwise link a copy of a chain of iterators for each caller.
    #[inline(never)]
    fn next_zone(
        &self,
        rest: &mut slice::Iter<'_, ZoneId>,
        request: &Request,
        node: NodeId,
    ) -> Option<ZoneId> {
        rest.copied().find(|id| {
            let zone = &self.zones[id.index()];
            zone.kind <= request.highest_zone
                && request.zones_below.is_none_or(|limit| zone.span.end <= limit.0)
                && (!matches!(request.nodes, NodeChoice::Only(_)) || zone.node == node)
        })
    }

    /// Takes from the pageblock that the CPU reserves. No watermark is checked: the pageblock's memory left
    /// the zone's count when the CPU reserved it.
    pub(super) fn take_from_own_in_zone(&self, needy: Needy<'_>) -> Option<(ZoneId, FrameId)> {
        let left = if needy.wanted.order < Order::PAGEBLOCK { self.take_from_own(needy) } else { None };
        left.map(|id| (needy.zone, id))
    }

    /// Takes a block from a zone that stays above its minimum watermark. Tries pageblocks of the request's
    /// type and whole ones first, then all. Skips the first search if no zone is below its low watermark,
    /// because the same search has just failed. A request that may use the highatomic reserve never skips it.
    fn take_above_min<I: Iterator<Item = ZoneId>>(
        &self,
        cpu: CpuId,
        request: &Request,
        is_below_low: bool,
        zones: impl Fn() -> I,
    ) -> Option<(ZoneId, FrameId)> {
        let highatomic = if is_highatomic(request) { Highatomic::Open } else { Highatomic::Closed };
        let needy = |zone| self.needy(zone, cpu, request, highatomic);
        let above_min = |zone| {
            let needy = needy(zone);
            if self.has_room(needy, request, Watermark::Min) { self.take_in_zone(needy) } else { None }
        };
        let may_differ = is_below_low || highatomic == Highatomic::Open;
        let suitable = if may_differ { zones().find_map(above_min) } else { None };
        let found = suitable.or_else(|| zones().find_map(|zone| self.rescue(needy(zone), request)));
        if let (Some((zone, _)), Highatomic::Open) = (found, highatomic) {
            self.zones[zone.index()].grow_highatomic_reserve(request.order);
        }
        found
    }

    /// Takes from a pageblock of the right type in a zone, or from a whole one.
    fn take_in_zone(&self, needy: Needy<'_>) -> Option<(ZoneId, FrameId)> {
        needy.share.activity.note::<A>();
        let found = if needy.wanted.order < Order::PAGEBLOCK {
            self.take_from_another(needy)
        } else {
            self.alloc_whole(needy).map(|block| FrameId::of(block, 0))
        };
        found.map(|id| (needy.zone, id))
    }

    /// Serves a request that would otherwise fail, from zones that have only their highatomic reserves left.
    #[cold]
    pub(super) fn open_highatomic_reserves<I: Iterator<Item = ZoneId>>(
        &self,
        cpu: CpuId,
        request: &Request,
        zones: impl Fn() -> I,
    ) -> Option<(ZoneId, FrameId)> {
        let rescue = |highatomic| {
            zones().find_map(|zone| self.rescue(self.needy(zone, cpu, request, highatomic), request))
        };
        let has_reserve = zones().any(|zone| self.zones[zone.index()].has_highatomic_reserve());
        // An atomic request of high order has tried the highatomic reserve already.
        if !has_reserve || is_highatomic(request) {
            return None;
        }
        if cannot_wait(request) || request.traits.contains(RequestTraits::OOM_VICTIM) {
            return rescue(Highatomic::Open);
        }
        while request.traits.contains(RequestTraits::MAY_WAIT)
            && zones().any(|zone| self.zones[zone.index()].shrink_highatomic_reserve())
        {
            let found = rescue(Highatomic::Closed);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}
