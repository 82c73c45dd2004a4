//! What one may look at.

use core::ops::Range;

use pageset_core::{CpuId, MigrateType, NodeId, Pfn, Watermark, Watermarks, ZoneId, ZoneKind};

use super::{BlockAllocator, FRAMES, head_of};
use crate::atomic::Relaxed;
use crate::cpu_lists::BlockCounters;
use crate::state::Phase;

/// What a zone's frames are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZoneUse {
    /// Its addresses.
    pub kind: ZoneKind,
    /// Its node.
    pub node: NodeId,
    /// Frames that the allocator may hand out.
    pub managed: u64,
    /// Frames that are free, wherever they are. Blocks in [`CpuArrays`](crate::CpuArrays) are in use.
    pub free: u64,
    /// The part of `free` that CPUs keep for their own requests under [`RemoteFrees::Kept`](crate::RemoteFrees::Kept). Another CPU gets these
    /// frames when their CPU gives them back.
    pub held: u64,
    /// Another part of `free`: frames of pageblocks that CPUs allocate from at this moment, and of whole pageblocks that CPUs have at
    /// hand. Another CPU takes these frames if it finds no others.
    pub at_hand: u64,
    /// Pageblocks that are free as a whole. Those that CPUs have at hand count too, since any CPU gets one that it needs.
    pub whole_pageblocks: u64,
    /// Pageblocks that are out of service. Their free frames are in none of the counts above.
    pub isolated_pageblocks: u64,
    /// Frames of whole pageblocks that are kept for requests of high order that cannot wait.
    pub reserved_highatomic: u64,
    /// The watermarks, in frames: a request leaves so many free, see [`Watermark`].
    pub watermarks: Watermarks,
}

impl BlockAllocator<'_> {
    /// What each zone's frames are used for. O(pageblocks).
    pub fn zones(&self) -> impl Iterator<Item = ZoneUse> {
        self.zones.iter().map(|zone| {
            let at_hand = |block: usize| match self.states[block].get().phase() {
                Phase::Current => self.free[block].count(),
                Phase::Spare => FRAMES,
                _ => 0,
            };
            let is_whole_at_hand = |block: &usize| match self.states[*block].get().phase() {
                Phase::Spare => true,
                Phase::Current => self.free[*block].is_full(),
                _ => false,
            };
            let is_isolated = |block: &usize| self.states[*block].get().is_isolated();
            let whole_at_hand = zone.blocks.clone().filter(is_whole_at_hand).count();
            let held = self.kept_in(zone.id) as u64;
            ZoneUse {
                kind: zone.kind,
                node: zone.node,
                managed: zone.managed(),
                free: self.free_in(zone) + held,
                held,
                at_hand: zone.blocks.clone().map(at_hand).sum::<usize>() as u64,
                whole_pageblocks: (zone.whole_blocks() + whole_at_hand) as u64,
                isolated_pageblocks: zone.blocks.clone().filter(is_isolated).count() as u64,
                reserved_highatomic: (zone.reserved.load(Relaxed) * FRAMES) as u64,
                watermarks: Watermarks {
                    min: zone.mark(Watermark::Min),
                    low: zone.mark(Watermark::Low),
                    high: zone.mark(Watermark::High),
                },
            }
        })
    }

    /// From the first to the last frame of its zones.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        let spans = || self.zones.iter().map(|zone| &zone.span);
        let start = spans().map(|span| span.start).min().unwrap_or(0);
        start..spans().map(|span| span.end).max().unwrap_or(0)
    }

    /// Which zone a frame lies in.
    #[must_use]
    pub fn zone_of(&self, pfn: Pfn) -> Option<ZoneId> {
        let zone = self.zones.iter().position(|zone| zone.frame(pfn).is_some())?;
        Some(ZoneId(zone as u16))
    }

    /// The CPU that owns the pageblock of a frame, if it is split.
    #[must_use]
    pub fn owner_of(&self, pfn: Pfn) -> Option<CpuId> {
        let (_, index) = self.locate(pfn)?;
        let state = self.states[index / FRAMES].get();
        state.is_open().then(|| state.owner())
    }

    /// The type of the pageblock of a frame, if it is in use.
    #[must_use]
    pub fn pageblock_type(&self, pfn: Pfn) -> Option<MigrateType> {
        let (_, index) = self.locate(pfn)?;
        let block = index / FRAMES;
        let state = self.states[block].get();
        match state.phase() {
            Phase::Inner => Some(self.states[head_of(block)].get().migratetype()),
            Phase::Handed | Phase::Idle | Phase::Current => Some(state.migratetype()),
            Phase::Absent | Phase::Whole | Phase::Spare | Phase::Changing => None,
        }
    }

    /// What all CPUs did together since the allocator was built.
    #[must_use]
    pub fn counters(&self) -> BlockCounters {
        let mut sum = BlockCounters::default();
        self.lists.iter().for_each(|lists| sum.add(&lists.counters));
        sum
    }
}
