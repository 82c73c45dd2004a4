//! All kinds of events. Each kind has the kernel's tracepoint name and the meaning of the event's fields.

/// The kind of an event. The numbers of kinds never change, because native files contain them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// A block was allocated: `pfn`, `order`, `gfp`, `migratetype` (as requested).
    MmPageAlloc = 1,
    /// A block was freed: `pfn`, `order`. If an [`EventKind::MmPageFreeBatched`] follows for the frame, the
    /// frame reaches its page set only with that later event.
    MmPageFree = 2,
    /// A frame that was freed in a batch reaches its page set: `pfn`. `refill` = 1 means that no earlier
    /// event reported the free, as on Linux before 3.3 (`mm_pagevec_free`).
    MmPageFreeBatched = 3,
    /// A block left a page set for the zone's free lists: `pfn`, `order`, `migratetype`.
    MmPagePcpuDrain = 4,
    /// A block left the zone's free lists, under the zone lock: `pfn`, `order`, `migratetype`. `refill` = 1
    /// only means that a page set could hold this order and type.
    MmPageAllocZoneLocked = 5,
    /// A request took a block of another migratetype: see [`Event::extfrag`](super::Event::extfrag). `order`
    /// and `migratetype` are the requested values, and `refill` is the fallback order. `gfp` is the fallback
    /// type, plus 256 if the whole pageblock changed its type.
    MmPageAllocExtfrag = 6,
    /// A CPU found a lock taken, and begins to wait. `pfn` = lock address, `gfp` = the tracepoint's flags (1
    /// spin, 2 read, 4 write, 8 rt, 16 per-CPU, 32 mutex), `order` = [`Caller`](super::Caller) if the call
    /// chain was recorded.
    ContentionBegin = 7,
    /// The CPU that waited has acquired the lock: `pfn` = lock address, `gfp` = result (0, or a negative
    /// errno as u32).
    ContentionEnd = 8,
    /// A work item starts: `pfn` = function address (0 in text traces), `order` = 1 `vmstat_update`,
    /// 2 `lru_add_drain_per_cpu`, 0 other.
    WorkqueueExecuteStart = 9,
    /// A work item ended. The fields have the same meaning as in an event
    /// [`EventKind::WorkqueueExecuteStart`].
    WorkqueueExecuteEnd = 10,
    /// A mark of the recorder around a zoneinfo sample: `pfn` = 0x5a00_0000 | cpu (before), 0x5b00_0000 | cpu
    /// (after).
    Marker = 11,
    /// A page fault from user mode: `pfn` = faulting address in bytes.
    PageFaultUser = 12,
    /// kswapd was woken: `pfn` = node, `order` = requested order.
    KswapdWake = 13,
    /// kswapd goes to sleep: `pfn` = node.
    KswapdSleep = 14,
    /// A task begins direct reclaim: `order`, and `gfp` if the source has this field.
    DirectReclaimBegin = 15,
    /// Direct reclaim ended: `pfn` = frames reclaimed.
    DirectReclaimEnd = 16,
    /// A task was forked: `pfn` = the child's pid.
    SchedProcessFork = 17,
    /// The bulk allocator was entered: `pfn` = number of requested frames, `gfp`.
    BulkAllocEntry = 18,
    /// The bulk allocator returned: `pfn` = number of allocated frames. The kernel has no allocation events
    /// for frames of bulk allocations.
    BulkAllocReturn = 19,
    /// kswapd was scheduled out: `pfn` = task state (0 running, 1 sleeping, 2 uninterruptible, 256
    /// preempted).
    KswapdSwitchedOut = 20,
    /// A block entered a per-CPU page set in a refill: `pfn`, `order`, `migratetype`. A patch with this event
    /// was posted in 2026; Linux 7.3.4 does not have the event.
    MmPagePcpuRefill = 21,
    /// A contended lock was released: `pfn` = lock address. A patch with this event was posted in 2026; Linux
    /// 7.1.3 does not have the event.
    ContendedRelease = 22,
}

impl EventKind {
    /// Number of kinds.
    pub const COUNT: usize = 22;
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; Self::COUNT] = [
        Self::MmPageAlloc,
        Self::MmPageFree,
        Self::MmPageFreeBatched,
        Self::MmPagePcpuDrain,
        Self::MmPageAllocZoneLocked,
        Self::MmPageAllocExtfrag,
        Self::ContentionBegin,
        Self::ContentionEnd,
        Self::WorkqueueExecuteStart,
        Self::WorkqueueExecuteEnd,
        Self::Marker,
        Self::PageFaultUser,
        Self::KswapdWake,
        Self::KswapdSleep,
        Self::DirectReclaimBegin,
        Self::DirectReclaimEnd,
        Self::SchedProcessFork,
        Self::BulkAllocEntry,
        Self::BulkAllocReturn,
        Self::KswapdSwitchedOut,
        Self::MmPagePcpuRefill,
        Self::ContendedRelease,
    ];

    /// The number of this kind in files: 1 to 22.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Index into tables of [`EventKind::COUNT`] entries.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize - 1
    }

    /// Returns the kind of event with this `code`, or `None` if no kind has this code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        if code >= 1 && code as usize <= Self::COUNT { Some(Self::ALL[code as usize - 1]) } else { None }
    }

    /// The kernel's tracepoint name. Four kinds have no tracepoint of their own. Two of these kinds come from
    /// probes on the bulk allocator, marks come from the recorder, and kswapd's switch is a filtered
    /// `sched_switch`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MmPageAlloc => "mm_page_alloc",
            Self::MmPageFree => "mm_page_free",
            Self::MmPageFreeBatched => "mm_page_free_batched",
            Self::MmPagePcpuDrain => "mm_page_pcpu_drain",
            Self::MmPageAllocZoneLocked => "mm_page_alloc_zone_locked",
            Self::MmPageAllocExtfrag => "mm_page_alloc_extfrag",
            Self::ContentionBegin => "contention_begin",
            Self::ContentionEnd => "contention_end",
            Self::WorkqueueExecuteStart => "workqueue_execute_start",
            Self::WorkqueueExecuteEnd => "workqueue_execute_end",
            Self::Marker => "tracing_mark_write",
            Self::PageFaultUser => "page_fault_user",
            Self::KswapdWake => "mm_vmscan_kswapd_wake",
            Self::KswapdSleep => "mm_vmscan_kswapd_sleep",
            Self::DirectReclaimBegin => "mm_vmscan_direct_reclaim_begin",
            Self::DirectReclaimEnd => "mm_vmscan_direct_reclaim_end",
            Self::SchedProcessFork => "sched_process_fork",
            Self::BulkAllocEntry => "alloc_pages_bulk_entry",
            Self::BulkAllocReturn => "alloc_pages_bulk_return",
            Self::KswapdSwitchedOut => "sched_switch",
            Self::MmPagePcpuRefill => "mm_page_pcpu_refill",
            Self::ContendedRelease => "contended_release",
        }
    }

    /// The kind whose tracepoint is called `name`.
    #[must_use]
    pub fn from_tracepoint(name: &[u8]) -> Option<Self> {
        // Nearly all lines of a trace have one of the following three names, so compare these names first.
        match name {
            b"mm_page_alloc" => Some(Self::MmPageAlloc),
            b"mm_page_free" => Some(Self::MmPageFree),
            b"mm_page_free_batched" => Some(Self::MmPageFreeBatched),
            // Events of frees had other names before Linux 3.3.
            b"mm_page_free_direct" => Some(Self::MmPageFree),
            b"mm_pagevec_free" => Some(Self::MmPageFreeBatched),
            _ => Self::ALL.into_iter().find(|kind| kind.name().as_bytes() == name),
        }
    }

    /// Whether [`Event::pfn`](super::Event::pfn) is a page frame number for this kind.
    #[must_use]
    pub const fn has_frame(self) -> bool {
        (self as u8) <= Self::MmPageAllocExtfrag as u8 || matches!(self, Self::MmPagePcpuRefill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_found_again() {
        for (index, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), index);
            assert_eq!(EventKind::from_code(kind.code()), Some(kind));
            assert_eq!(EventKind::from_tracepoint(kind.name().as_bytes()), Some(kind));
        }
        assert_eq!(EventKind::from_code(0), None);
        assert_eq!(EventKind::from_code(23), None);
        assert_eq!(EventKind::from_tracepoint(b"mm_page"), None);
        assert_eq!(EventKind::from_tracepoint(b"mm_page_free_direct"), Some(EventKind::MmPageFree));
        assert_eq!(EventKind::from_tracepoint(b"mm_pagevec_free"), Some(EventKind::MmPageFreeBatched));
    }
}
