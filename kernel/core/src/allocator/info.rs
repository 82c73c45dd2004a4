//! Reads the allocator's state: zones as `/proc/zoneinfo` shows them, page sets, counters.

use core::ops::Range;

use super::PageAllocator;
use crate::frame::State;
use crate::platform::Platform;
use crate::stats::Counters;
use crate::zone::{Watermarks, Zone};
use crate::{CpuId, MigrateType, NR_ORDERS, NodeId, Order, PAGEBLOCK_ORDER, Pfn, ZoneId, ZoneKind};

/// A snapshot of one zone. All sizes are in frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// Index of the zone.
    pub id: ZoneId,
    /// The kind of the zone's addresses.
    pub kind: ZoneKind,
    /// The zone's node.
    pub node: NodeId,
    /// All frame numbers of the zone, including holes.
    pub span: Range<u64>,
    /// Number of frames that were given to the allocator.
    pub managed: u64,
    /// Number of free frames on the zone's lists, without isolated frames.
    pub free: u64,
    /// Number of free frames that are isolated.
    pub free_isolated: u64,
    /// Number of frames in pageblocks that are reserved for atomic requests.
    pub reserved_highatomic: u64,
    /// The zone's watermarks, without the boost.
    pub watermarks: Watermarks,
    /// Number of frames that the zone adds to each watermark for a while after fragmentation (the *boost*).
    pub boost: u64,
    /// Number of frames that the zone keeps from requests that could use a higher zone, indexed by the
    /// highest zone of the request.
    pub protection: [u64; ZoneKind::COUNT],
    /// Number of free blocks of each order, including isolated blocks.
    pub nr_free: [u32; NR_ORDERS],
}

impl ZoneInfo {
    /// Number of pageblocks that are completely free, including isolated pageblocks.
    #[must_use]
    pub fn whole_pageblocks(&self) -> u64 {
        let of_order =
            |order: Order| u64::from(self.nr_free[order.index()]) << (order.index() - PAGEBLOCK_ORDER);
        Order::PAGEBLOCK.and_above().map(of_order).sum()
    }
}

/// The free memory and the watermarks of one zone, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneMemory {
    /// Number of frames that were given to the allocator.
    pub managed: u64,
    /// Number of free frames on the zone's lists, without isolated frames.
    pub free: u64,
    /// The zone's watermarks, without the boost.
    pub watermarks: Watermarks,
}

/// A snapshot of one page set, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesetInfo {
    /// Number of pages that the page set holds.
    pub count: i32,
    /// A free that brings `count` to this number of pages causes a drain. While memory is short, a drain may
    /// begin at a lower number of pages.
    pub high: i32,
    /// Number of pages that a plain refill or drain moves.
    pub batch: i32,
    /// The lower limit of `high`.
    pub high_min: i32,
    /// The upper limit of `high`.
    pub high_max: i32,
}

/// A snapshot of the block that contains a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// First frame of the block.
    pub first: Pfn,
    /// Order of the block.
    pub order: Order,
    /// Holder of the block.
    pub held_by: BlockUse,
}

/// The holder of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockUse {
    /// The zone holds the block on a free list.
    FreeList,
    /// A per-CPU page set holds the block.
    Pageset,
    /// The caller that allocated the block still holds it.
    Owner,
    /// Nothing holds the block, because it is out of service.
    Leaked,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// The block that contains a frame. Returns `None` if the frame lies in a hole or in no zone. O(orders).
    /// Takes no lock, so other CPUs may change the block before the caller reads the answer. Unless the
    /// caller owns the block, the answer is only a hint, for example where to try
    /// [`alloc_at`](Self::alloc_at).
    pub fn block_of(&self, pfn: Pfn) -> Option<BlockInfo> {
        let (zone, frame) = self.locate(pfn)?;
        let (first, state) = zone.body.frames.covering_block(frame)?;
        let (order, held_by) = match state {
            State::Free { order, .. } => (order, BlockUse::FreeList),
            State::Cached { order, .. } | State::Owned { order } => (order, BlockUse::Pageset),
            State::Allocated { order, .. } => (order, BlockUse::Owner),
            State::Leaked { order } => (order, BlockUse::Leaked),
            State::Interior | State::Hole => return None,
        };
        Some(BlockInfo { first: zone.body.span.pfn(first), order, held_by })
    }

    /// Whether an allocated block of exactly this order starts at `pfn`. Unless the caller owns the block,
    /// the answer is only a hint, because the function takes no lock. O(zones), and reads one byte of
    /// metadata.
    #[inline]
    pub fn is_allocated(&self, pfn: Pfn, order: Order) -> bool {
        self.locate(pfn).is_some_and(|(zone, frame)| zone.body.frames.is_allocated(frame, order))
    }

    /// Snapshots of all zones, in table order.
    pub fn zones(&self) -> impl Iterator<Item = ZoneInfo> {
        self.zones.iter().map(|zone| {
            let body = &zone.body;
            let pages = |count: i64| u64::try_from(count).unwrap_or(0);
            ZoneInfo {
                id: body.id,
                kind: body.kind,
                node: body.node,
                span: body.span.pfns(),
                managed: body.managed.get(),
                free: pages(body.gauges.free_pages()),
                free_isolated: pages(body.gauges.free_isolated()),
                reserved_highatomic: body.gauges.reserved_highatomic(),
                watermarks: body.marks.all(),
                boost: body.marks.boost(),
                protection: core::array::from_fn(|kind| body.lowmem_reserve[kind].get()),
                nr_free: zone
                    .inspect(|buddy| core::array::from_fn(|order| buddy.nr_free(Order::from_index(order)))),
            }
        })
    }

    /// The free memory and the watermarks of one zone. `None` if the zone does not exist. This function takes
    /// no lock, so a reclaimer may call it often.
    pub fn zone_memory(&self, zone: ZoneId) -> Option<ZoneMemory> {
        let body = &self.zones.get(zone.index())?.body;
        Some(ZoneMemory {
            managed: body.managed.get(),
            free: u64::try_from(body.gauges.free_pages()).unwrap_or(0),
            watermarks: body.marks.all(),
        })
    }

    /// A snapshot of one CPU's page set of one zone. `None` if the zone or CPU does not exist.
    pub fn pageset_info(&self, zone: ZoneId, cpu: CpuId) -> Option<PagesetInfo> {
        let pageset = self.find_pageset(zone, cpu)?;
        let limits = pageset.limits();
        let (count, high) = pageset.with(|state| (state.pcp.count, state.pcp.high));
        Some(PagesetInfo {
            count,
            high,
            batch: limits.batch,
            high_min: limits.high_min,
            high_max: limits.high_max,
        })
    }

    /// Number of pages in all page sets, including pages on owners' lists that other CPUs freed.
    pub fn cached_pages(&self) -> u64 {
        let of_zone = |zone: &Zone<'_, P>| -> u64 {
            let frames = &zone.body.frames;
            let pagesets = self.pagesets.of_zone(zone.body.id);
            pagesets.iter().map(|pageset| pageset.count() + pageset.remote_pages(frames)).sum()
        };
        self.zones.iter().map(of_zone).sum()
    }

    /// Counters of one CPU's page set of one zone. `None` if the zone or CPU does not exist.
    pub fn pageset_counters(&self, zone: ZoneId, cpu: CpuId) -> Option<Counters> {
        Some(self.find_pageset(zone, cpu)?.with(|state| state.counters))
    }

    fn find_pageset(&self, zone: ZoneId, cpu: CpuId) -> Option<&crate::Pageset<P>> {
        self.pagesets.of_zone(self.zones.get(zone.index())?.body.id).get(cpu.index())
    }

    /// Counters of one zone. `None` if the zone does not exist.
    pub fn zone_counters(&self, zone: ZoneId) -> Option<Counters> {
        self.zones.get(zone.index()).map(|zone| self.sum_zone(zone))
    }

    /// Counters of the whole allocator.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.zones.iter().for_each(|zone| sum += &self.sum_zone(zone));
        sum
    }

    fn sum_zone(&self, zone: &Zone<'_, P>) -> Counters {
        let mut sum = zone.inspect(|buddy| buddy.stats);
        sum.numa_foreign += zone.body.numa_foreign.get();
        sum.trylock_failures += zone.body.trylock_failures.get();
        sum.bad_pages += zone.body.bad_frees.get();
        sum.allocstall += zone.body.stalls.get();
        for pageset in self.pagesets.of_zone(zone.body.id) {
            pageset.with(|state| sum += &state.counters);
        }
        sum
    }

    /// The zone that contains a frame.
    pub fn zone_of(&self, pfn: Pfn) -> Option<ZoneId> {
        self.locate(pfn).map(|(zone, _)| zone.body.id)
    }

    /// The type of the frame's pageblock. `None` if the frame lies in no zone.
    pub fn pageblock_type(&self, pfn: Pfn) -> Option<MigrateType> {
        self.locate(pfn).map(|(zone, frame)| zone.body.frames.pageblock_type(frame))
    }

    /// The CPU that owns the frame's pageblock, under a policy with [owners](field@crate::Policy::ownership).
    /// `None` if no CPU owns the pageblock, or if the frame lies in no zone. Takes no lock, so the answer is
    /// a hint.
    pub fn pageblock_owner(&self, pfn: Pfn) -> Option<CpuId> {
        self.locate(pfn).and_then(|(zone, frame)| zone.body.owners.owner(frame))
    }

    /// Each zone, with the page sets of all CPUs for this zone.
    pub(crate) fn zones_and_pagesets(&self) -> impl Iterator<Item = (&Zone<'a, P>, &[crate::Pageset<P>])> {
        self.zones.iter().map(|zone| (zone, self.pagesets.of_zone(zone.body.id)))
    }
}
