//! The zone that a CPU's arrays hold blocks of.

use pageset_core::{CpuId, NodeChoice, NodeId, Order, Pfn, Request, ZoneId, ZoneKind};

use super::BlockAllocator;

/// What the arrays know of the zone, so that most requests need not look at the allocator's tables for it.
#[derive(Clone, Copy)]
pub(super) struct Home {
    pub(super) zone: ZoneId,
    node: NodeId,
    /// The requests that use this zone first, by their highest zone: a bit for each kind.
    kinds: u8,
    /// The first frame, and how many the zone spans whose indices an array can hold.
    first: Pfn,
    frames: u64,
    /// Frame number minus frame index, modulo 2^64.
    offset: u64,
}

impl Home {
    /// A zone that no request uses.
    const NONE: Self =
        Self { zone: ZoneId(0), node: NodeId(0), kinds: 0, first: Pfn(0), frames: 0, offset: 0 };

    /// The zone that a CPU's requests use first.
    pub(super) fn of(allocator: &BlockAllocator<'_>, cpu: CpuId) -> Self {
        let zone = allocator.home_zone(cpu, &Request::new(Order::ZERO));
        let Some((zone, home)) = zone.zip(allocator.homes.get(cpu.index())) else { return Self::NONE };
        let is_first = |kind: &ZoneKind| home.zones[kind.index()] == zone;
        let kinds =
            ZoneKind::ALL.into_iter().filter(is_first).fold(0, |kinds, kind| kinds | 1 << kind.index());
        let offset = allocator.lists_at(zone, cpu).offset;
        let span = &allocator.zones[zone.index()].span;
        Self {
            zone,
            node: home.node,
            kinds,
            first: Pfn(span.start),
            frames: (span.end - span.start)
                .min((1_u64 << u32::BITS).saturating_sub(span.start.wrapping_sub(offset))),
            offset,
        }
    }

    /// Whether this is the zone that such a request uses first.
    #[inline]
    pub(super) fn serves(&self, request: &Request) -> bool {
        let is_at_home = match request.nodes {
            NodeChoice::Local => true,
            NodeChoice::Prefer(node) => node == self.node,
            NodeChoice::Only(_) => false,
        };
        is_at_home && self.kinds >> request.highest_zone.index() & 1 == 1 && request.below.is_none()
    }

    /// The frame number of a frame index.
    #[inline]
    pub(super) fn pfn(&self, index: u32) -> Pfn {
        Pfn(u64::from(index).wrapping_add(self.offset))
    }

    /// The frame index of a frame number of this zone's.
    #[inline]
    pub(super) fn frame(&self, pfn: Pfn) -> Option<u32> {
        let is_here = pfn.0.wrapping_sub(self.first.0) < self.frames;
        is_here.then(|| pfn.0.wrapping_sub(self.offset) as u32)
    }
}
