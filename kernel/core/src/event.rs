//! The events of the allocator. An event named `Mm…` has the name of one of the kernel's tracepoints.

use crate::{CpuId, MigrateType, NodeId, Order, Pfn, ZoneId};

/// Receives each event when the event happens, on the CPU that causes the event.
///
/// The allocator may hold locks during the call. A sink must not call the allocator, and should be quick.
pub trait EventSink: Sync {
    /// Whether the sink wants events. If `ENABLED` is false, the allocator does not build events.
    const ENABLED: bool = true;

    /// Receives one event. `cpu` is the CPU that caused the event.
    fn emit(&self, cpu: CpuId, event: Event);
}

impl EventSink for () {
    const ENABLED: bool = false;

    #[inline]
    fn emit(&self, _: CpuId, _: Event) {}
}

/// Calls `event` and reports the result, if the sink wants events.
#[inline]
pub(crate) fn emit<E: EventSink>(sink: &E, cpu: CpuId, event: impl FnOnce() -> Event) {
    if E::ENABLED {
        sink.emit(cpu, event());
    }
}

/// One event. Variants named `Mm…` are the kernel's tracepoints with the kernel's fields (spec §6). The other
/// variants are events of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `mm_page_alloc`: an allocation ended. A bulk allocation does not emit this event for pages from the
    /// page set.
    MmPageAlloc {
        /// First frame of the block, or `None` if the allocation failed.
        pfn: Option<Pfn>,
        /// Order of the block.
        order: Order,
        /// The migratetype that was requested.
        migratetype: MigrateType,
    },
    /// `mm_page_alloc_zone_locked`: a block left its own type's free list.
    MmPageAllocZoneLocked {
        /// First frame of the block.
        pfn: Pfn,
        /// The order that was requested.
        order: Order,
        /// The migratetype of the list that the block left.
        migratetype: MigrateType,
        /// Whether page sets hold blocks of this order and type. `percpu_refill` does not say whether a
        /// refill took the block.
        percpu_refill: bool,
    },
    /// `mm_page_alloc_extfrag`: a request got memory of another type.
    MmPageAllocExtfrag {
        /// First frame of a block: in Linux 6.1 of the block that was stolen, in 6.12 of the block that the
        /// request got.
        pfn: Pfn,
        /// The order that was requested.
        alloc_order: Order,
        /// The order of the other type's free block that was found.
        fallback_order: Order,
        /// The migratetype that was requested.
        alloc_migratetype: MigrateType,
        /// The migratetype of the list that the block was found on.
        fallback_migratetype: MigrateType,
        /// Whether the pageblock now has the requested type.
        change_ownership: bool,
    },
    /// `mm_page_free`: a free began. `mm_page_free` is the first event of every free that is not refused.
    MmPageFree {
        /// First frame of the block.
        pfn: Pfn,
        /// Order of the block.
        order: Order,
    },
    /// `mm_page_free_batched`: a page that is freed as one of a list is about to enter a per-CPU page set, or
    /// the list of its pageblock's owner.
    MmPageFreeBatched {
        /// First frame of the block.
        pfn: Pfn,
        /// Order of the block (the kernel prints 0).
        order: Order,
    },
    /// `mm_page_pcpu_drain`: a block left a per-CPU page set for the buddy lists.
    MmPagePcpuDrain {
        /// First frame of the block.
        pfn: Pfn,
        /// Order of the block.
        order: Order,
        /// The migratetype of the list that receives the block.
        migratetype: MigrateType,
    },
    /// A per-CPU page set fetched blocks from its zone, or found none, under one hold of the zone lock.
    PcpRefill {
        /// The zone of the event.
        zone: ZoneId,
        /// Order of the blocks that the event counts. If CPUs own pageblocks, the event usually counts single
        /// pages, of order 0.
        order: Order,
        /// Migratetype of the list that was empty.
        migratetype: MigrateType,
        /// Number of blocks that the refill wanted.
        asked: u32,
        /// Number of blocks that the refill got.
        got: u32,
    },
    /// A per-CPU page set gave blocks back to its zone under one hold of the zone lock.
    PcpDrain {
        /// The zone of the event.
        zone: ZoneId,
        /// The CPU that owns the page set. Another CPU may do the drain.
        cpu: CpuId,
        /// Reason for the drain.
        reason: DrainReason,
        /// Number of pages that left the page set.
        pages: u32,
    },
    /// A periodic tick changed a page set's `high`, or found more pages than `high`.
    PcpDecay {
        /// The zone of the event.
        zone: ZoneId,
        /// The new `high`, in pages.
        high: i32,
        /// Number of pages above the new `high`. After this event, the tick drains the pages above `high`.
        excess: u32,
    },
    /// An operation of this CPU took a zone's lock.
    ZoneLock {
        /// The zone of the event.
        zone: ZoneId,
    },
    /// A free or a drain read the metadata of a buddy's first frame, to see whether two blocks can merge. In
    /// Linux each frame's metadata has its own cache line. A read of a buddy's metadata transfers its cache
    /// line if another CPU wrote the line last.
    BuddyLook {
        /// The buddy's first frame.
        pfn: Pfn,
    },
    /// A drain took a block off its page set before the drain asked for the zone's lock. The drain read the
    /// metadata of the block's first frame to unlink the block.
    DrainPick {
        /// First frame of the block.
        pfn: Pfn,
        /// The first frame of the block's buddy, if the policy prefetches the buddy's metadata.
        buddy: Option<Pfn>,
    },
    /// A request woke the reclaimer, because no zone could serve the request at the low watermark, or because
    /// the request tried a zone with boosted watermarks.
    WakeKswapd {
        /// The zone of the event.
        zone: ZoneId,
        /// The order that was requested.
        order: Order,
    },
    /// A request that may wait found no memory. At this point a kernel would begin direct reclaim.
    DirectReclaim {
        /// The node where reclaim would start.
        node: NodeId,
        /// The order that was requested.
        order: Order,
    },
    /// A block was found to be bad. The block goes out of service, or is out of service already. All counts
    /// of pages stay right.
    BadPage {
        /// First frame of the block.
        pfn: Pfn,
        /// Order of the block.
        order: Order,
        /// Where the block was going when it was found to be bad.
        found: FoundAt,
    },
}

/// Where a block was going when it was found to be bad (spec §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoundAt {
    /// A refill found the bad block on its way from the free lists to a page set.
    Refill,
    /// An allocation found the bad block on its way from a page set to a user.
    Alloc,
    /// An allocation found the bad block on its way from the free lists to a user.
    DirectAlloc,
    /// A free found the bad block on its way from a user to the allocator.
    Free,
    /// A drain found the bad block on its way from a page set to the free lists.
    Drain,
}

/// The reason for draining a per-CPU page set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrainReason {
    /// A free raised the page set's number of pages to the page set's limit.
    High,
    /// Consecutive frees of order 1 to 3 met the policy's conditions (*free_high* in the 2023 series).
    FreeHigh,
    /// The periodic tick found more pages than `high`.
    Decay,
    /// The periodic tick found an idle page set of a remote node, and drained a batch.
    Remote,
    /// Memory is short, an allocation at a given place needs pages of page sets, a CPU goes offline, or the
    /// caller asked for the drain.
    Demand,
}
