//! The events of the allocator: a closed list. An event has the name of the kernel's tracepoint where there
//! is one.

use crate::{CpuId, MigrateType, NodeId, Order, Pfn, ZoneId};

/// Receives each event when it happens, on the CPU that caused it.
///
/// The allocator holds locks during the call. A sink must not call the allocator, and should be quick.
pub trait EventSink: Sync {
    /// Whether the sink listens. With `false`, events are not even built.
    const ENABLED: bool = true;

    /// Takes one event.
    fn emit(&self, cpu: CpuId, event: Event);
}

impl EventSink for () {
    const ENABLED: bool = false;

    #[inline]
    fn emit(&self, _: CpuId, _: Event) {}
}

/// Reports `event` if the sink listens. Otherwise the event is not built.
#[inline]
pub(crate) fn emit<E: EventSink>(sink: &E, cpu: CpuId, event: impl FnOnce() -> Event) {
    if E::ENABLED {
        sink.emit(cpu, event());
    }
}

/// One event. Variants named `Mm…` are the kernel's tracepoints with the kernel's fields (spec §6). The
/// kernel has no tracepoint for the other variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `mm_page_alloc`: an ordinary allocation ended. The bulk interface does not emit it.
    MmPageAlloc {
        /// First frame, or `None` if the allocation failed.
        pfn: Option<Pfn>,
        /// Its order.
        order: Order,
        /// The requested type.
        migratetype: MigrateType,
    },
    /// `mm_page_alloc_zone_locked`: a block left its own type's free list.
    MmPageAllocZoneLocked {
        /// First frame.
        pfn: Pfn,
        /// The requested order.
        order: Order,
        /// The type of the list that the block left.
        migratetype: MigrateType,
        /// Whether a per-CPU page set could hold this order and type, even if this call was not a refill.
        percpu_refill: bool,
    },
    /// `mm_page_alloc_extfrag`: another type's memory was used.
    MmPageAllocExtfrag {
        /// Linux 6.1: the stolen block. 6.12: the returned block.
        pfn: Pfn,
        /// The requested order.
        alloc_order: Order,
        /// The order of the other type's free block that was found.
        fallback_order: Order,
        /// The requested type.
        alloc_migratetype: MigrateType,
        /// The type whose list was used.
        fallback_migratetype: MigrateType,
        /// Whether the pageblock now has the requested type.
        change_ownership: bool,
    },
    /// `mm_page_free`: emitted first by every free.
    MmPageFree {
        /// First frame.
        pfn: Pfn,
        /// Its order.
        order: Order,
    },
    /// `mm_page_free_batched`: a page of a list free is about to enter a per-CPU page set.
    MmPageFreeBatched {
        /// First frame.
        pfn: Pfn,
        /// Its order (the kernel prints 0).
        order: Order,
    },
    /// `mm_page_pcpu_drain`: a block left a per-CPU page set for the buddy lists.
    MmPagePcpuDrain {
        /// First frame.
        pfn: Pfn,
        /// Its order.
        order: Order,
        /// The type of the list that receives it.
        migratetype: MigrateType,
    },
    /// A per-CPU page set fetched blocks from its zone under one hold of the zone lock.
    PcpRefill {
        /// The zone.
        zone: ZoneId,
        /// Order of each block.
        order: Order,
        /// Type of the list that was empty.
        migratetype: MigrateType,
        /// Blocks wanted.
        asked: u32,
        /// Blocks obtained.
        got: u32,
    },
    /// A per-CPU page set gave blocks back to its zone under one hold of the zone lock.
    PcpDrain {
        /// The zone.
        zone: ZoneId,
        /// The CPU that owns the page set. It is not always the CPU that drains.
        cpu: CpuId,
        /// Reason for the drain.
        reason: DrainReason,
        /// Pages returned.
        pages: u32,
    },
    /// A periodic tick lowered a page set's `high`.
    PcpDecay {
        /// The zone.
        zone: ZoneId,
        /// The new `high`, in pages.
        high: i32,
        /// Pages above the new `high`, which will be drained.
        excess: u32,
    },
    /// An operation of this CPU took a zone's lock.
    ZoneLock {
        /// The zone.
        zone: ZoneId,
    },
    /// A free read the metadata of a buddy's first frame, to see whether the two can merge. In Linux each
    /// frame's metadata has its own cache line, so the read is a cache-line transfer if another CPU wrote it
    /// last.
    BuddyLook {
        /// The buddy's first frame.
        pfn: Pfn,
    },
    /// A drain took a block off its page set before it asked for the zone's lock. To unlink the block, it
    /// read the metadata of the block's first frame.
    DrainPick {
        /// First frame.
        pfn: Pfn,
        /// The first frame of the block's buddy, if the policy prefetches its metadata.
        buddy: Option<Pfn>,
    },
    /// A request that may wake the reclaimer found a zone below a watermark, or used boosted memory.
    WakeKswapd {
        /// The zone.
        zone: ZoneId,
        /// The requested order.
        order: Order,
    },
    /// A request that may wait found nothing. A kernel would reclaim directly here.
    DirectReclaim {
        /// The node where reclaim would start.
        node: NodeId,
        /// The requested order.
        order: Order,
    },
    /// A block was leaked on purpose because its metadata cannot be trusted. Every counter stays right.
    BadPage {
        /// First frame.
        pfn: Pfn,
        /// Its order.
        order: Order,
        /// Where the block was going when it was found to be bad.
        found: FoundAt,
    },
}

/// Where a block was going when it was found to be bad (spec §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoundAt {
    /// The block was going from the free lists to a page set.
    Refill,
    /// The block was going from a page set to a user.
    Alloc,
    /// The block was going from the free lists to a user.
    DirectAlloc,
    /// The block was coming from a user.
    Free,
    /// The block was going from a page set to the free lists.
    Drain,
}

/// The reason for draining a per-CPU page set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrainReason {
    /// A free reached the limit.
    High,
    /// Consecutive frees of order 1 to 3: the series' *free_high*.
    FreeHigh,
    /// The periodic tick found more pages than `high`.
    Decay,
    /// The periodic tick emptied a page set of a remote node.
    Remote,
    /// A drain on demand: memory is short, or a zone or CPU goes offline.
    Demand,
}
