//! Everything the allocator reports: a closed list, under the kernel's tracepoint names where it has one.

use crate::{CpuId, MigrateType, NodeId, Order, Pfn, ZoneId};

/// Receives each event at the moment it happens, on the CPU that caused it.
///
/// Called with locks held: a sink must not call back into the allocator, and should be quick.
pub trait EventSink: Sync {
    /// Whether anything listens. With `false`, events are not even built.
    const ENABLED: bool = true;

    /// Takes one event.
    fn emit(&self, cpu: CpuId, event: Event);
}

impl EventSink for () {
    const ENABLED: bool = false;

    #[inline]
    fn emit(&self, _: CpuId, _: Event) {}
}

/// Reports `event` if the sink listens; building the event costs nothing otherwise.
#[inline]
pub(crate) fn emit<E: EventSink>(sink: &E, cpu: CpuId, event: impl FnOnce() -> Event) {
    if E::ENABLED {
        sink.emit(cpu, event());
    }
}

/// One event. Variants named `Mm…` are the kernel's tracepoints with the kernel's fields (spec §6). The kernel has no
/// tracepoint for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `mm_page_alloc`: an ordinary allocation ended; `None` if it failed. Not for pages of the bulk interface.
    MmPageAlloc {
        /// First frame.
        pfn: Option<Pfn>,
        /// Its order.
        order: Order,
        /// The type that was asked for.
        migratetype: MigrateType,
    },
    /// `mm_page_alloc_zone_locked`: a block left its own type's free list.
    MmPageAllocZoneLocked {
        /// First frame.
        pfn: Pfn,
        /// The order that was asked for.
        order: Order,
        /// The list it came from.
        migratetype: MigrateType,
        /// Whether order and type could live in a per-CPU page set, even if this call was not a refill.
        percpu_refill: bool,
    },
    /// `mm_page_alloc_extfrag`: another type's memory was used.
    MmPageAllocExtfrag {
        /// Linux 6.1: the block that was stolen; 6.12: the block that is returned.
        pfn: Pfn,
        /// The order that was asked for.
        alloc_order: Order,
        /// The order of the block that was found.
        fallback_order: Order,
        /// The type that was asked for.
        alloc_migratetype: MigrateType,
        /// The type whose list was used.
        fallback_migratetype: MigrateType,
        /// Whether the pageblock now belongs to the type that was asked for.
        change_ownership: bool,
    },
    /// `mm_page_free`: the first act of every free.
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
        /// The list it goes to.
        migratetype: MigrateType,
    },
    /// A per-CPU page set fetched blocks from its zone, under one zone lock.
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
    /// A per-CPU page set gave blocks back to its zone, under one zone lock.
    PcpDrain {
        /// The zone.
        zone: ZoneId,
        /// The CPU whose page set it was; drains on demand may reach another CPU's.
        cpu: CpuId,
        /// What caused it.
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
        /// Pages above it that are about to be drained.
        excess: u32,
    },
    /// An operation of this CPU took a zone's lock.
    ZoneLock {
        /// The zone.
        zone: ZoneId,
    },
    /// A free looked whether a block's buddy can be merged: it read the metadata of the buddy's first frame. Where each frame's
    /// metadata has a cache line of its own, as in Linux, that is a line which another CPU may have written last.
    BuddyLook {
        /// The buddy's first frame.
        pfn: Pfn,
    },
    /// A drain took a block off its page set, before it asked for the zone's lock: it read the metadata of the block's first
    /// frame.
    DrainPick {
        /// First frame.
        pfn: Pfn,
        /// The first frame of its buddy, if the policy says that its metadata is fetched ahead.
        buddy: Option<Pfn>,
    },
    /// A zone fell below a watermark (or used boosted memory) on behalf of a request that may wake the reclaimer.
    WakeKswapd {
        /// The zone.
        zone: ZoneId,
        /// The order that was wanted.
        order: Order,
    },
    /// A request may wait and found nothing: this is where a kernel would reclaim directly.
    DirectReclaim {
        /// The node it would start from.
        node: NodeId,
        /// The order that was wanted.
        order: Order,
    },
    /// A block is lost on purpose because its metadata cannot be trusted; every counter stays true.
    BadPage {
        /// First frame.
        pfn: Pfn,
        /// Its order.
        order: Order,
        /// Where it was noticed.
        found: FoundAt,
    },
}

/// Where a block was found to be bad (spec §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoundAt {
    /// On its way from the free lists to a page set.
    Refill,
    /// On its way from a page set to a user.
    Alloc,
    /// On its way from the free lists to a user.
    DirectAlloc,
    /// On its way from a user.
    Free,
    /// On its way from a page set to the free lists.
    Drain,
}

/// Why a per-CPU page set was drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrainReason {
    /// A free reached the limit.
    High,
    /// Consecutive frees of order 1 to 3: the series' *free_high*.
    FreeHigh,
    /// The periodic tick found more than `high`.
    Decay,
    /// The periodic tick emptied a page set of a remote node.
    Remote,
    /// A drain on demand: memory is short, or a zone or CPU goes offline.
    Demand,
}
