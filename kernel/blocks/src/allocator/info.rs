//! Counts and facts about zones, frames and CPUs, for a kernel or program to read.

use core::ops::Range;

use pageset_core::{CpuId, MigrateType, NodeId, Pfn, Watermark, Watermarks, ZoneId, ZoneKind};

use super::{BlockAllocator, FRAMES, head_of};
use crate::access::Access;
use crate::atomic::Relaxed;
use crate::cpu_share::BlockCounters;
use crate::ids::{BlockId, each};
use crate::state::Phase;
use crate::zone::Zone;

/// How a zone's frames are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZoneUse {
    /// The kind of the zone.
    pub kind: ZoneKind,
    /// The node of the zone.
    pub node: NodeId,
    /// Frames that the allocator may hand out.
    pub managed: u64,
    /// Free frames, including those of reserved pageblocks and stocks.
    pub free: u64,
    /// The part of `free` that lies in reserved pageblocks and stocks. Other CPUs usually take frames of
    /// reserved pageblocks only if they find no other free frames.
    pub at_hand: u64,
    /// Pageblocks that are completely free, those in stocks or reserved by CPUs included. The highatomic
    /// reserve keeps some of these pageblocks for atomic requests.
    pub whole_pageblocks: u64,
    /// Pageblocks that are out of service. The fields `free`, `at_hand` and `whole_pageblocks` do not count
    /// isolated pageblocks.
    pub isolated_pageblocks: u64,
    /// Frames in the highatomic reserve: whole pageblocks that are kept for atomic requests of high order.
    pub reserved_highatomic: u64,
    /// The zone's watermarks.
    pub watermarks: Watermarks,
}

impl<A: Access> BlockAllocator<'_, A> {
    /// The use of each zone's frames. O(pageblocks).
    pub fn zones(&self) -> impl Iterator<Item = ZoneUse> {
        self.zones.iter().map(|zone| {
            // Counts without settling, so that a query changes nothing and a program may ask often.
            let is_idle = |block: &BlockId| self.state(*block).get().is_idle();
            let idle = each(&zone.blocks).filter(is_idle).map(|block| self.rows(block).free() as u64);
            let is_isolated = |block: &BlockId| self.state(*block).get().is_isolated();
            let reserved = || self.reserved_in(zone.id);
            let stocked = self.stocked(zone.id);
            let of_reserved: u64 = reserved().map(|block| self.rows(block).free() as u64).sum();
            let at_hand = of_reserved + (stocked * FRAMES) as u64;
            let whole_at_hand = reserved().filter(|block| self.rows(*block).is_free()).count();
            ZoneUse {
                kind: zone.kind,
                node: zone.node,
                managed: zone.managed(),
                free: zone.whole_frames().saturating_add(idle.sum::<u64>()).saturating_add(at_hand),
                at_hand,
                whole_pageblocks: zone.whole_blocks().saturating_add(whole_at_hand + stocked) as u64,
                isolated_pageblocks: each(&zone.blocks).filter(is_isolated).count() as u64,
                reserved_highatomic: (zone.highatomic_reserve.load(Relaxed) as u64)
                    .saturating_mul(FRAMES as u64),
                watermarks: Watermarks {
                    min: zone.mark(Watermark::Min),
                    low: zone.mark(Watermark::Low),
                    high: zone.mark(Watermark::High),
                },
            }
        })
    }

    /// The number of free frames of all zones, as [`zones`](Self::zones) counts them. O(CPUs × zones), plus
    /// one step for each unsettled pageblock.
    #[must_use]
    pub fn free_frames(&self) -> u64 {
        let free_of = |zone: &Zone| {
            self.settle_all(zone);
            let of_reserved: usize = self.reserved_in(zone.id).map(|block| self.rows(block).free()).sum();
            zone.free_at_least() + (of_reserved + self.stocked(zone.id) * FRAMES) as u64
        };
        self.zones.iter().map(free_of).sum()
    }

    /// The range from the lowest frame of all zones to the highest.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        let spans = || self.zones.iter().map(|zone| &zone.span);
        let start = spans().map(|span| span.start).min().unwrap_or(0);
        start..spans().map(|span| span.end).max().unwrap_or(0)
    }

    /// The zone of a frame.
    #[must_use]
    pub fn zone_of(&self, pfn: Pfn) -> Option<ZoneId> {
        let zone = self.zones.iter().position(|zone| zone.frame(pfn).is_some())?;
        Some(ZoneId(zone as u16))
    }

    /// The CPU that reserves the pageblock of a frame.
    #[must_use]
    pub fn owner_of(&self, pfn: Pfn) -> Option<CpuId> {
        let (_, id) = self.locate(pfn)?;
        self.state(id.block()).get().owner()
    }

    /// The type of a frame's pageblock. Returns `None` if the pageblock is whole, is changing, or has no
    /// memory, or if the frame lies in no zone.
    #[must_use]
    pub fn pageblock_type(&self, pfn: Pfn) -> Option<MigrateType> {
        let block = self.locate(pfn)?.1.block();
        let state = self.state(block).get();
        match state.phase() {
            Phase::SecondHalf => Some(self.state(head_of(block)).get().migratetype()),
            Phase::Block | Phase::Open => Some(state.migratetype()),
            Phase::Absent | Phase::Whole | Phase::Parked | Phase::Changing => None,
        }
    }

    /// The sum of all CPUs' counters since the allocator was built.
    #[must_use]
    pub fn counters(&self) -> BlockCounters {
        let mut sum = BlockCounters::default();
        self.shares.iter().for_each(|share| sum.add(&share.counters));
        #[cfg(feature = "line-counts")]
        {
            sum.settled = self.rows.iter().map(|rows| rows.last_change.moves()).sum();
        }
        sum
    }
}
