//! The home zone of a CPU: the zone whose blocks the CPU's arrays hold.

use core::ops::Range;

use pageset_core::{CpuId, NodeChoice, NodeId, Order, Pfn, Request, ZoneId, ZoneKind};

use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::ids::{BlockId, FrameId};
use crate::zone::Zone;

/// A copy of facts about the home zone, so that most requests to the arrays need not read the allocator's
/// tables.
#[derive(Clone, Copy)]
pub(super) struct Home {
    pub(super) zone: ZoneId,
    node: NodeId,
    /// A bit for each zone kind. The bit is set if requests with this kind as their `highest_zone` try the
    /// home zone first.
    kinds: u8,
    /// The number of the first frame of the zone's first pageblock. Places in the zone count from this frame.
    first: Pfn,
}

impl Home {
    /// The zone that a CPU's requests use first, and its pageblocks. If a CPU's requests may use no zone,
    /// `kinds` is 0 and no request uses the other fields.
    pub(super) fn of(allocator: &BlockAllocator<'_, impl Access>, cpu: CpuId) -> (Self, Range<BlockId>) {
        let none = Self { zone: ZoneId(0), node: NodeId(0), kinds: 0, first: Pfn(0) };
        let zone = allocator.home_zone(cpu, &Request::new(Order::ZERO));
        let Some((zone, home)) = zone.zip(allocator.homes.get(cpu.index())) else {
            return (none, BlockId(0)..BlockId(0));
        };
        let is_first = |kind: &ZoneKind| home.zones[kind.index()] == zone;
        let kinds =
            ZoneKind::ALL.into_iter().filter(is_first).fold(0, |kinds, kind| kinds | 1 << kind.index());
        let Zone { blocks, .. } = &allocator.zones[zone.index()];
        let first = allocator.zones[zone.index()].pfn(FrameId::of(blocks.start, 0));
        // An array stores a place in 32 bits: 16 TiB of 4 KiB pages. Blocks beyond 16 TiB bypass the arrays.
        let end = blocks.end.min(blocks.start.after(u32::MAX as usize / FRAMES));
        (Self { zone, node: home.node, kinds, first }, blocks.start..end)
    }

    /// Whether a request tries the home zone first. Returns `false` also if the zone must be looked up in the
    /// zonelists.
    #[inline]
    pub(super) fn serves(&self, request: &Request) -> bool {
        let is_at_home = match request.nodes {
            NodeChoice::Local => true,
            NodeChoice::Prefer(node) => node == self.node,
            NodeChoice::Only(_) => false,
        };
        is_at_home && self.kinds >> request.highest_zone.index() & 1 == 1 && request.zones_below.is_none()
    }

    /// Converts a place in the zone to a frame number.
    #[inline]
    pub(super) fn pfn(&self, place: u32) -> Pfn {
        Pfn(u64::from(place).wrapping_add(self.first.0))
    }

    /// Returns the pageblock of a frame number, counted from the zone's first pageblock, and the frame's
    /// place in that pageblock. A pageblock of this zone may also contain frames of another zone. In the rows
    /// of this zone, the other zone's frames are withheld, so no call can free them by mistake.
    #[inline]
    pub(super) fn frame(&self, pfn: Pfn) -> (usize, usize) {
        let place = pfn.0.wrapping_sub(self.first.0);
        let block = usize::try_from(place / FRAMES as u64).unwrap_or(usize::MAX);
        (block, place as usize % FRAMES)
    }
}
