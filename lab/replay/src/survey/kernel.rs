//! The recorded kernel's own work: for example refills, drains, fallbacks, ticks and reclaim.

use pageset_trace::{Decision, Decisions, Event, EventKind, LockWaits, PFN_NONE, TraceInfo, Work};

use super::log2::Log2Counts;
use super::who::{Who, WhoCounter};
use super::zone_lock::{ZoneLockCounter, ZoneLocks};

/// The recorded kernel's own decisions, as events show them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Refills of page sets, in pages. A refill is a run of `mm_page_alloc_zone_locked` events of one order
    /// and type on one CPU. A single block that was allocated past a busy page set has the same events, so
    /// this block counts as a refill too.
    pub refills: Log2Counts,
    /// Number of blocks that came directly from the zone, because they are too large for page sets.
    pub direct_blocks: u64,
    /// The number of pages in `direct_blocks`.
    pub direct_pages: u64,
    /// Drains of page sets, in pages. A drain is a run of `mm_page_pcpu_drain` events on one CPU. All slices
    /// of a drain form one run.
    pub drains: Log2Counts,
    /// Number of requests that were served from another migratetype (`mm_page_alloc_extfrag`).
    pub extfrag: u64,
    /// Number of fallbacks that changed the migratetype of a pageblock.
    pub extfrag_ownership_changes: u64,
    /// Number of calls of the bulk allocator.
    pub bulk_calls: u64,
    /// Number of pages that the bulk allocator was asked for.
    pub bulk_pages_asked: u64,
    /// Number of pages that the bulk allocator delivered. Pages of bulk allocations have no allocation
    /// events.
    pub bulk_pages_got: u64,
    /// Number of periodic ticks (`vmstat_update`), which decay page sets.
    pub vmstat_ticks: u64,
    /// Number of flushes of LRU batches on request (`lru_add_drain_per_cpu`).
    pub lru_drains: u64,
    /// Waits for contended spinning locks, including zone locks.
    pub spin_waits: Log2Counts,
    /// Waits for all other contended locks.
    pub other_waits: Log2Counts,
    /// Counts about zone locks. The recording may not show for each lock whether it is a zone lock.
    pub zone_locks: ZoneLocks,
    /// Number of waits with a beginning but no end, or with an end but no beginning.
    pub unpaired_waits: u64,
    /// Number of times that kswapd was woken.
    pub kswapd_wakes: u64,
    /// Number of times that kswapd went to sleep.
    pub kswapd_sleeps: u64,
    /// Number of times that a task reclaimed memory for itself.
    pub direct_reclaims: u64,
    /// Number of frames that tasks reclaimed for themselves.
    pub direct_reclaimed_pages: u64,
    /// Number of page faults from user mode.
    pub page_faults: u64,
    /// Number of tasks forked.
    pub forks: u64,
}

/// Groups the kernel's events into refills, drains and waits. A program that reads a recording for another
/// purpose can pass the events to this counter at the same time.
#[derive(Debug, Default)]
pub struct KernelCounter {
    kernel: Kernel,
    decisions: Decisions,
    waits: LockWaits,
    zone_locks: ZoneLockCounter,
    who: WhoCounter,
}

impl KernelCounter {
    /// Makes a counter for a recording. The recording's description names the tasks of the recorded command.
    pub(super) fn of(info: &TraceInfo) -> Self {
        Self { who: WhoCounter::new(info), ..Self::default() }
    }

    /// Counts one event.
    #[inline]
    pub fn record(&mut self, event: &Event) {
        if let Some(decision) = self.decisions.record(event) {
            self.add(decision);
        }
        if event.kind != EventKind::ContentionEnd {
            self.zone_locks.record(event);
        }
        self.count(event);
    }

    fn count(&mut self, event: &Event) {
        self.who.record(event);
        let kernel = &mut self.kernel;
        match event.kind {
            EventKind::MmPageAllocZoneLocked if !event.is_pcp_refill() && event.pfn != PFN_NONE => {
                let pages = event.block_pages();
                kernel.direct_blocks += u64::from(pages > 0);
                kernel.direct_pages += pages;
            }
            EventKind::MmPageAllocExtfrag => {
                kernel.extfrag += 1;
                let changed = event.extfrag().is_some_and(|extfrag| extfrag.change_ownership);
                kernel.extfrag_ownership_changes += u64::from(changed);
            }
            EventKind::ContentionBegin => self.waits.begin(event),
            EventKind::ContentionEnd => {
                if let Some(wait) = self.waits.end(event) {
                    let waits = if wait.is_spin { &mut kernel.spin_waits } else { &mut kernel.other_waits };
                    waits.record(wait.wait_ns);
                    if wait.is_spin {
                        let task = self.who.slot_of(event);
                        self.zone_locks.obtained(event, wait, task);
                    }
                }
            }
            EventKind::WorkqueueExecuteStart => match event.work() {
                Some(Work::VmstatUpdate) => kernel.vmstat_ticks += 1,
                Some(Work::LruAddDrainPerCpu) => kernel.lru_drains += 1,
                _ => {}
            },
            EventKind::BulkAllocEntry => {
                kernel.bulk_calls += 1;
                kernel.bulk_pages_asked = kernel.bulk_pages_asked.saturating_add(event.pfn);
            }
            EventKind::BulkAllocReturn => {
                kernel.bulk_pages_got = kernel.bulk_pages_got.saturating_add(event.pfn);
            }
            EventKind::KswapdWake => kernel.kswapd_wakes += 1,
            EventKind::KswapdSleep => kernel.kswapd_sleeps += 1,
            EventKind::DirectReclaimBegin => kernel.direct_reclaims += 1,
            EventKind::DirectReclaimEnd => {
                kernel.direct_reclaimed_pages = kernel.direct_reclaimed_pages.saturating_add(event.pfn);
            }
            EventKind::PageFaultUser => kernel.page_faults += 1,
            EventKind::SchedProcessFork => kernel.forks += 1,
            _ => {}
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn finish(self) -> Kernel {
        self.finish_with_tasks().0
    }

    /// Does the same as [`KernelCounter::finish`], and also returns the totals of each task.
    pub(super) fn finish_with_tasks(mut self) -> (Kernel, Who) {
        for (_, decision) in std::mem::take(&mut self.decisions).finish() {
            self.add(decision);
        }
        let (zone_locks, waits) = self.zone_locks.finish();
        let kernel = Kernel { unpaired_waits: self.waits.unpaired(), zone_locks, ..self.kernel };
        (kernel, self.who.finish(waits))
    }

    #[inline]
    fn add(&mut self, decision: Decision) {
        let runs = if decision.refill.is_some() { &mut self.kernel.refills } else { &mut self.kernel.drains };
        runs.record(decision.pages);
        self.who.decided(&decision);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, cpu: u16, order: u8) -> Event {
        Event { order, refill: 1, migratetype: 1, ..Event::new(kind, 0, cpu) }
    }

    fn count(events: &[Event]) -> Kernel {
        let mut counter = KernelCounter::default();
        events.iter().for_each(|event| counter.record(event));
        counter.finish()
    }

    #[test]
    fn consecutive_events_of_one_cpu_are_one_refill() {
        use EventKind::{ContentionBegin, MmPageAlloc, MmPageAllocExtfrag, MmPageAllocZoneLocked};
        let kernel = count(&[
            event(MmPageAllocZoneLocked, 0, 0),
            event(MmPageAllocZoneLocked, 1, 0),
            event(MmPageAllocExtfrag, 0, 0),
            event(ContentionBegin, 0, 0),
            event(MmPageAllocZoneLocked, 0, 0),
            event(MmPageAlloc, 0, 0),
            event(MmPageAllocZoneLocked, 0, 0),
            event(MmPageAllocZoneLocked, 0, 3),
        ]);
        assert_eq!(kernel.refills.total(), 4, "2 pages, 1 page, 1 page, 8 pages");
        assert_eq!((kernel.refills.sum, kernel.refills.max), (12, 8));
        assert_eq!((kernel.extfrag, kernel.unpaired_waits), (1, 1));
    }

    #[test]
    fn drains_end_with_anything_else() {
        use EventKind::{MmPageFree, MmPagePcpuDrain};
        let kernel = count(&[
            event(MmPagePcpuDrain, 0, 0),
            event(MmPagePcpuDrain, 0, 2),
            event(MmPageFree, 0, 0),
            event(MmPagePcpuDrain, 0, 255),
        ]);
        assert_eq!((kernel.drains.total(), kernel.drains.sum, kernel.drains.max), (2, 5, 5));
    }

    #[test]
    fn blocks_past_the_page_sets_are_no_refills() {
        let direct = Event { refill: 0, ..event(EventKind::MmPageAllocZoneLocked, 0, 4) };
        let kernel = count(&[direct]);
        assert_eq!((kernel.refills.total(), kernel.direct_blocks, kernel.direct_pages), (0, 1, 16));
    }
}
