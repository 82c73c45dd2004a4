//! What one may look at: zones as `/proc/zoneinfo` shows them, page sets, counters.

use core::ops::Range;

use super::PageAllocator;
use crate::frame::State;
use crate::platform::Platform;
use crate::stats::Counters;
use crate::zone::{Watermarks, Zone};
use crate::{CpuId, MigrateType, NR_ORDERS, NodeId, Order, PAGEBLOCK_ORDER, Pfn, ZoneId, ZoneKind};

/// One zone at this moment. All sizes in frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// Its index.
    pub id: ZoneId,
    /// What its addresses are good for.
    pub kind: ZoneKind,
    /// Its node.
    pub node: NodeId,
    /// All its frame numbers, holes included.
    pub span: Range<u64>,
    /// Frames the allocator was given.
    pub managed: u64,
    /// Free frames on its lists, isolated ones not included.
    pub free: u64,
    /// Free frames that are isolated.
    pub free_isolated: u64,
    /// Frames of pageblocks reserved for atomic requests.
    pub reserved_highatomic: u64,
    /// Watermarks without boost.
    pub watermarks: Watermarks,
    /// What fragmentation added to the watermarks.
    pub boost: u64,
    /// Frames kept back from requests that could use a higher zone, by the highest they may use.
    pub protection: [u64; ZoneKind::COUNT],
    /// Free blocks of each order.
    pub nr_free: [u32; NR_ORDERS],
}

impl ZoneInfo {
    /// Pageblocks that are free as a whole.
    #[must_use]
    pub fn whole_pageblocks(&self) -> u64 {
        let of_order =
            |order: Order| u64::from(self.nr_free[order.index()]) << (order.index() - PAGEBLOCK_ORDER);
        Order::PAGEBLOCK.and_above().map(of_order).sum()
    }
}

/// One page set at this moment, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesetInfo {
    /// Pages held.
    pub count: i32,
    /// Pages from which a free drains.
    pub high: i32,
    /// Pages that a refill or drain moves by default.
    pub batch: i32,
    /// Lower limit of `high`.
    pub high_min: i32,
    /// Upper limit of `high`.
    pub high_max: i32,
}

/// The block that a frame belongs to, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Its first frame.
    pub first: Pfn,
    /// Its order.
    pub order: Order,
    /// Who has it.
    pub held_by: BlockUse,
}

/// Who has a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockUse {
    /// The zone: it is on a free list.
    FreeList,
    /// A per-CPU page set.
    Pageset,
    /// Whoever allocated it.
    Owner,
    /// Nobody: it is out of service.
    Leaked,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// The block that a frame belongs to. Takes no lock: by the time the answer is read, other CPUs may have changed
    /// it, so it is a hint (where to try [`alloc_at`](Self::alloc_at), say) unless the caller owns the block. `None` in
    /// holes and outside of all zones. O(orders).
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

    /// Whether somebody owns a block of exactly this order that starts at `pfn`. As [`block_of`](Self::block_of), a hint;
    /// O(zones), one byte read.
    #[inline]
    pub fn is_allocated(&self, pfn: Pfn, order: Order) -> bool {
        self.locate(pfn).is_some_and(|(zone, frame)| zone.body.frames.is_allocated(frame, order))
    }

    /// All zones at this moment, in table order.
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

    /// One CPU's page set of one zone. `None` if there is no such zone or CPU.
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

    /// Pages held in page sets, of all zones and CPUs.
    pub fn cached_pages(&self) -> u64 {
        let held = |pageset: &crate::Pageset<P>| pageset.with(|state| state.pcp.count.max(0) as u64);
        self.pagesets.iter().map(held).sum()
    }

    /// What one CPU did through its page set of one zone. `None` if there is no such zone or CPU.
    pub fn pageset_counters(&self, zone: ZoneId, cpu: CpuId) -> Option<Counters> {
        Some(self.find_pageset(zone, cpu)?.with(|state| state.counters))
    }

    fn find_pageset(&self, zone: ZoneId, cpu: CpuId) -> Option<&crate::Pageset<P>> {
        self.pagesets.of_zone(self.zones.get(zone.index())?.body.id).get(cpu.index())
    }

    /// Everything that happened in one zone. `None` if there is no such zone.
    pub fn zone_counters(&self, zone: ZoneId) -> Option<Counters> {
        self.zones.get(zone.index()).map(|zone| self.sum_zone(zone))
    }

    /// Everything that happened.
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

    /// The zone a frame lies in.
    pub fn zone_of(&self, pfn: Pfn) -> Option<ZoneId> {
        self.locate(pfn).map(|(zone, _)| zone.body.id)
    }

    /// The type of the pageblock that holds a frame. `None` if it lies in no zone.
    pub fn pageblock_type(&self, pfn: Pfn) -> Option<MigrateType> {
        self.locate(pfn).map(|(zone, frame)| zone.body.frames.pageblock_type(frame))
    }

    /// The CPU that owns the pageblock around a frame, under a policy whose pageblocks have
    /// [owners](crate::Policy::ownership). `None` if nobody does, or if the frame lies in no zone. Takes no lock: a hint.
    pub fn pageblock_owner(&self, pfn: Pfn) -> Option<CpuId> {
        self.locate(pfn).and_then(|(zone, frame)| zone.body.owners.owner(frame))
    }

    /// Each zone, with each CPU's page set of it.
    pub(crate) fn zones_and_pagesets(&self) -> impl Iterator<Item = (&Zone<'a, P>, &[crate::Pageset<P>])> {
        self.zones.iter().map(|zone| (zone, self.pagesets.of_zone(zone.body.id)))
    }
}
