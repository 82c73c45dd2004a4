//! The recorded kernel's own work: for example refills, drains, fallbacks, ticks and reclaim.

use pageset_trace::{Decision, Decisions, Event, EventKind, LockWaits, PFN_NONE, TraceInfo, Work};
use serde::Serialize;

use super::log2::Log2Counts;
use super::orders::Orders;
use super::who::{Who, WhoCounter};
use super::zone_lock::{ZoneLockCounter, ZoneLocks};
use crate::recorded::{KindCounts, RecordedKinds, needs};
use crate::who::percent;

/// The recorded kernel's own decisions, as events show them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Kernel {
    /// Percentage of allocations that the recorded kernel's page sets served without a refill. Only
    /// allocations of orders that page sets hold since Linux 5.14 are counted. `None` if the recording has no
    /// refills.
    pub hit_percent: Option<f64>,
    /// Refills of page sets, in pages. A refill is a run of `mm_page_alloc_zone_locked` events of one order
    /// and type on one CPU. A single block that was allocated past a busy page set has the same events, so
    /// this block counts as a refill too.
    pub refills: Option<Log2Counts>,
    /// Drains of page sets, in pages. A drain is a run of `mm_page_pcpu_drain` events on one CPU. All slices
    /// of a drain form one run.
    pub drains: Option<Log2Counts>,
    /// The number of pages in refills. The number is also known if the events that end a refill were not
    /// recorded.
    #[serde(skip)]
    pub refilled_pages: Option<u64>,
    /// The number of pages in drains. The number is also known if the events that end a drain were not
    /// recorded.
    #[serde(skip)]
    pub drained_pages: Option<u64>,
    /// Number of blocks that came directly from the zone, because they are too large for page sets.
    pub direct_blocks: Option<u64>,
    /// The number of pages in `direct_blocks`.
    pub direct_pages: Option<u64>,
    /// Number of calls of the bulk allocator.
    pub bulk_calls: Option<u64>,
    /// Number of pages that the bulk allocator was asked for.
    pub bulk_pages_asked: Option<u64>,
    /// Number of pages that the bulk allocator delivered. Pages of bulk allocations have no allocation
    /// events.
    pub bulk_pages_got: Option<u64>,
    /// Number of requests that were served from another migratetype (`mm_page_alloc_extfrag`).
    pub extfrag: Option<u64>,
    /// Number of fallbacks that changed the migratetype of a pageblock.
    pub extfrag_ownership_changes: Option<u64>,
    /// Number of periodic ticks (`vmstat_update`), which decay page sets.
    pub vmstat_ticks: Option<u64>,
    /// Number of flushes of LRU batches on request (`lru_add_drain_per_cpu`).
    pub lru_drains: Option<u64>,
    /// Waits for contended spinning locks, including zone locks.
    pub spin_wait_ns: Option<Log2Counts>,
    /// Waits for all other contended locks. `None` if the recording has no such waits, because recorders may
    /// leave these waits out.
    pub other_wait_ns: Option<Log2Counts>,
    /// Counts about zone locks. The recording may not show for each lock whether it is a zone lock.
    #[serde(rename = "zone_lock_waits")]
    pub zone_locks: ZoneLocks,
    /// Number of waits with a beginning but no end, or with an end but no beginning.
    pub unpaired_waits: Option<u64>,
    /// Number of times that kswapd was woken.
    pub kswapd_wakes: Option<u64>,
    /// Number of times that kswapd went to sleep.
    pub kswapd_sleeps: Option<u64>,
    /// Number of times that a task reclaimed memory for itself.
    pub direct_reclaims: Option<u64>,
    /// Number of frames that tasks reclaimed for themselves.
    pub direct_reclaimed_pages: Option<u64>,
    /// Number of page faults from user mode.
    pub page_faults: Option<u64>,
    /// Number of tasks forked.
    pub forks: Option<u64>,
}

impl Kernel {
    /// Number of refills and drains.
    #[must_use]
    pub fn visits(&self) -> Option<u64> {
        Some(self.refills.as_ref()?.total() + self.drains.as_ref()?.total())
    }
}

/// Groups the kernel's events into refills, drains and waits.
#[derive(Debug, Default)]
pub(super) struct KernelCounter {
    decisions: Decisions,
    refills: Log2Counts,
    drains: Log2Counts,
    direct_blocks: u64,
    direct_pages: u64,
    bulk_pages_asked: u64,
    bulk_pages_got: u64,
    extfrag_ownership_changes: u64,
    vmstat_ticks: u64,
    lru_drains: u64,
    waits: LockWaits,
    spin_waits: Log2Counts,
    other_waits: Log2Counts,
    zone_locks: ZoneLockCounter,
    direct_reclaimed_pages: u64,
    who: WhoCounter,
}

impl KernelCounter {
    /// Makes a counter for a recording. The recording's description names the tasks of the recorded command.
    pub(super) fn of(info: &TraceInfo) -> Self {
        Self { who: WhoCounter::new(info), ..Self::default() }
    }

    /// Counts one event.
    #[inline]
    pub(super) fn record(&mut self, event: &Event) {
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
        match event.kind {
            EventKind::MmPageAllocZoneLocked if !event.is_pcp_refill() && event.pfn != PFN_NONE => {
                let pages = event.block_pages();
                self.direct_blocks += u64::from(pages > 0);
                self.direct_pages += pages;
            }
            EventKind::MmPageAllocExtfrag => {
                let changed = event.extfrag().is_some_and(|extfrag| extfrag.change_ownership);
                self.extfrag_ownership_changes += u64::from(changed);
            }
            EventKind::ContentionBegin => self.waits.begin(event),
            EventKind::ContentionEnd => {
                if let Some(wait) = self.waits.end(event) {
                    let waits = if wait.is_spin { &mut self.spin_waits } else { &mut self.other_waits };
                    waits.record(wait.wait_ns);
                    if wait.is_spin {
                        let task = self.who.slot_of(event);
                        self.zone_locks.obtained(event, wait, task);
                    }
                }
            }
            EventKind::WorkqueueExecuteStart => match event.work() {
                Some(Work::VmstatUpdate) => self.vmstat_ticks += 1,
                Some(Work::LruAddDrainPerCpu) => self.lru_drains += 1,
                _ => {}
            },
            EventKind::BulkAllocEntry => {
                self.bulk_pages_asked = self.bulk_pages_asked.saturating_add(event.pfn);
            }
            EventKind::BulkAllocReturn => {
                self.bulk_pages_got = self.bulk_pages_got.saturating_add(event.pfn);
            }
            EventKind::DirectReclaimEnd => {
                self.direct_reclaimed_pages = self.direct_reclaimed_pages.saturating_add(event.pfn);
            }
            _ => {}
        }
    }

    /// Returns the kernel's work, and the totals of each task.
    pub(super) fn finish(
        mut self,
        recorded: &RecordedKinds,
        kinds: &KindCounts,
        orders: &Orders,
    ) -> (Kernel, Who) {
        for (_, decision) in std::mem::take(&mut self.decisions).finish() {
            self.add(decision);
        }
        let (zone_locks, waits) = self.zone_locks.finish(recorded);
        let of = |kind: EventKind, count: u64| recorded.known(&[kind], count);
        let events = |kind: EventKind| of(kind, kinds[kind.index()]);
        let refills = recorded.known(needs::REFILLS, self.refills.clone());
        let kernel = Kernel {
            hit_percent: refills.as_ref().zip(orders.allocated_of_set_orders()).and_then(hit_percent),
            refilled_pages: recorded.known(needs::ZONE_PAGES, self.refills.sum),
            refills,
            drained_pages: of(EventKind::MmPagePcpuDrain, self.drains.sum),
            drains: recorded.known(needs::DRAINS, self.drains),
            direct_blocks: recorded.known(needs::ZONE_PAGES, self.direct_blocks),
            direct_pages: recorded.known(needs::ZONE_PAGES, self.direct_pages),
            bulk_calls: events(EventKind::BulkAllocEntry),
            bulk_pages_asked: of(EventKind::BulkAllocEntry, self.bulk_pages_asked),
            bulk_pages_got: of(EventKind::BulkAllocReturn, self.bulk_pages_got),
            extfrag: events(EventKind::MmPageAllocExtfrag),
            extfrag_ownership_changes: of(EventKind::MmPageAllocExtfrag, self.extfrag_ownership_changes),
            vmstat_ticks: of(EventKind::WorkqueueExecuteStart, self.vmstat_ticks),
            lru_drains: of(EventKind::WorkqueueExecuteStart, self.lru_drains),
            spin_wait_ns: recorded.known(needs::WAITS, self.spin_waits),
            other_wait_ns: recorded.known(needs::WAITS, self.other_waits).filter(|waits| waits.total() > 0),
            zone_locks,
            unpaired_waits: recorded.known(needs::WAITS, self.waits.unpaired()),
            kswapd_wakes: events(EventKind::KswapdWake),
            kswapd_sleeps: events(EventKind::KswapdSleep),
            direct_reclaims: events(EventKind::DirectReclaimBegin),
            direct_reclaimed_pages: of(EventKind::DirectReclaimEnd, self.direct_reclaimed_pages),
            page_faults: events(EventKind::PageFaultUser),
            forks: events(EventKind::SchedProcessFork),
        };
        (kernel, self.who.finish(waits))
    }

    #[inline]
    fn add(&mut self, decision: Decision) {
        let runs = if decision.refill.is_some() { &mut self.refills } else { &mut self.drains };
        runs.record(decision.pages);
        self.who.decided(&decision);
    }
}

fn hit_percent((refills, allocated): (&Log2Counts, u64)) -> Option<f64> {
    let refills = refills.total();
    percent(allocated.saturating_sub(refills), allocated).filter(|_| refills > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    fn event(kind: EventKind, cpu: u16, order: u8) -> Event {
        Event { order, refill: 1, migratetype: 1, ..Event::new(kind, 0, cpu) }
    }

    fn count(events: &[Event]) -> Kernel {
        let mut counter = KernelCounter::default();
        let mut kinds = [0; EventKind::COUNT];
        events.iter().for_each(|event| counter.record(event));
        recorded::count(&mut kinds, events);
        counter.finish(&RecordedKinds::all(), &kinds, &Orders::default()).0
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
        let refills = kernel.refills.unwrap();
        assert_eq!(refills.total(), 4, "2 pages, 1 page, 1 page, 8 pages");
        assert_eq!((refills.sum, refills.max), (12, 8));
        assert_eq!((kernel.extfrag, kernel.unpaired_waits), (Some(1), Some(1)));
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
        let drains = kernel.drains.unwrap();
        assert_eq!((drains.total(), drains.sum, drains.max), (2, 5, 5));
    }

    #[test]
    fn blocks_past_the_page_sets_are_no_refills() {
        let direct = Event { refill: 0, ..event(EventKind::MmPageAllocZoneLocked, 0, 4) };
        let kernel = count(&[direct]);
        let refills = kernel.refills.map(|refills| refills.total());
        assert_eq!((refills, kernel.direct_blocks, kernel.direct_pages), (Some(0), Some(1), Some(16)));
    }
}
