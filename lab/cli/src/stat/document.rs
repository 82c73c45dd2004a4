//! Writes a survey (the contents of one recording) as JSON. Keys are stable. Times are in nanoseconds, sizes
//! in pages.

use std::collections::BTreeMap;

use pageset_replay::recorded::needs;
use pageset_replay::sites::Sites;
use pageset_replay::who::Who;
use pageset_replay::{Bursts, CpuTotals, Lifetimes, Log2Counts, Survey, ZoneLocks, ZoneSurvey};
use pageset_report::Provenance;
use pageset_trace::{Counts, EventKind, TraceInfo};
use serde::Serialize;

use super::percent::{kernel_hit_percent, percent};
use super::sections::{other_waits, type_key, type_names};
use super::warnings::warnings;
use crate::layouts::LayoutOrigin;
use crate::origin::TraceDocument;

#[derive(Serialize)]
pub(super) struct StatDocument<'a> {
    trace: TraceDocument,
    /// Number of events of each tracepoint.
    events: BTreeMap<&'static str, u64>,
    /// Tracepoints that were perhaps not recorded. Figures that need their events are `null`.
    not_recorded: Vec<&'static str>,
    orders: Orders,
    cpus: Cpus,
    lifetimes: Option<&'a Lifetimes>,
    bursts: Option<&'a Bursts>,
    kernel: Kernel<'a>,
    /// The numbers of a recording of counts, which has no events.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
    /// The load by process and by control group, and the recorded command's part. Absent if the recording
    /// does not distinguish tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<Who>,
    /// Call sites, and locks other than zone locks that CPUs waited for. Absent if the recording has no call
    /// chains.
    #[serde(skip_serializing_if = "Option::is_none")]
    sites: Option<Sites>,
    zones: &'a [ZoneSurvey],
    warnings: Vec<String>,
    provenance: &'a Provenance,
}

#[derive(Serialize)]
struct Orders {
    /// One entry for each order. Orders without any block are left out.
    by_order: Vec<ByOrder>,
    allocated_blocks: Option<u64>,
    allocated_pages: Option<u64>,
    freed_blocks: Option<u64>,
    freed_pages: Option<u64>,
    freed_in_batches: Option<u64>,
    failed: Option<u64>,
    impossible: u64,
}

#[derive(Serialize)]
struct ByOrder {
    order: usize,
    /// Number of allocated blocks of each migratetype.
    allocated: Option<BTreeMap<String, u64>>,
    freed: Option<u64>,
}

impl ByOrder {
    fn is_used(&self) -> bool {
        self.freed.is_some_and(|freed| freed > 0)
            || self.allocated.iter().flat_map(BTreeMap::values).any(|blocks| *blocks > 0)
    }
}

#[derive(Serialize)]
struct Cpus {
    each: Vec<Cpu>,
    /// Number of blocks for each pair of allocating and freeing CPU. Pairs without any block are left out.
    matrix: Option<Vec<Pair>>,
    beyond_matrix: Option<u64>,
    local_blocks: Option<u64>,
    local_pages: Option<u64>,
    remote_blocks: Option<u64>,
    remote_pages: Option<u64>,
    remote_percent: Option<f64>,
}

#[derive(Serialize)]
struct Cpu {
    cpu: usize,
    events: u64,
    allocated_pages: Option<u64>,
    freed_pages: Option<u64>,
}

#[derive(Serialize)]
struct Pair {
    allocating_cpu: usize,
    freeing_cpu: usize,
    blocks: u64,
}

/// Waits for zone locks. The wait's call chain, or the next event of the waiting CPU, shows that the lock was
/// a zone lock.
#[derive(Serialize)]
struct ZoneLockWaits {
    waits: u64,
    wait_ns: u64,
    by_caller: Vec<CallerWaits>,
}

/// The waits for zone locks whose call chain contains this caller.
#[derive(Serialize)]
struct CallerWaits {
    caller: &'static str,
    waits: u64,
    wait_ns: u64,
}

impl ZoneLockWaits {
    fn of(locks: &ZoneLocks) -> Self {
        let callers = locks.by_caller();
        let by_caller = callers.map(|(caller, found)| CallerWaits {
            caller: caller.name(),
            waits: found.waits,
            wait_ns: found.wait_ns,
        });
        Self { waits: locks.waits, wait_ns: locks.wait_ns, by_caller: by_caller.collect() }
    }
}

#[derive(Serialize)]
struct Kernel<'a> {
    hit_percent: Option<f64>,
    refills: Option<&'a Log2Counts>,
    drains: Option<&'a Log2Counts>,
    direct_blocks: Option<u64>,
    direct_pages: Option<u64>,
    bulk_calls: Option<u64>,
    bulk_pages_asked: Option<u64>,
    bulk_pages_got: Option<u64>,
    extfrag: Option<u64>,
    extfrag_ownership_changes: Option<u64>,
    vmstat_ticks: Option<u64>,
    lru_drains: Option<u64>,
    spin_wait_ns: Option<&'a Log2Counts>,
    other_wait_ns: Option<&'a Log2Counts>,
    zone_lock_waits: Option<ZoneLockWaits>,
    unpaired_waits: Option<u64>,
    kswapd_wakes: Option<u64>,
    kswapd_sleeps: Option<u64>,
    direct_reclaims: Option<u64>,
    direct_reclaimed_pages: Option<u64>,
    page_faults: Option<u64>,
    forks: Option<u64>,
}

impl<'a> StatDocument<'a> {
    pub(super) fn new(info: &TraceInfo, survey: &'a Survey, provenance: &'a Provenance) -> Self {
        let seconds = survey.time.map(|time| time.seconds());
        let machine = info.machine.clone().map(|machine| (machine, LayoutOrigin::Recorded));
        let recorded = &survey.recorded;
        let events = survey.kinds.iter().filter(|(_, count)| *count > 0);
        Self {
            trace: TraceDocument::new(info, survey.events, seconds, survey.lost, machine.as_ref()),
            events: events.map(|(kind, count)| (kind.name(), *count)).collect(),
            not_recorded: recorded.lacking(&EventKind::ALL).into_iter().map(EventKind::name).collect(),
            orders: orders(survey),
            cpus: cpus(survey),
            lifetimes: recorded.known(needs::LOAD, &survey.lifetimes),
            bursts: recorded.known(needs::LOAD, &survey.bursts),
            kernel: kernel(survey),
            counts: info.counts.clone(),
            who: Who::new(info, survey),
            sites: Sites::new(info, survey),
            zones: &survey.zones,
            warnings: warnings(info, survey),
            provenance,
        }
    }
}

fn orders(survey: &Survey) -> Orders {
    let orders = &survey.orders;
    let allocated = |count| survey.recorded.known(needs::ALLOCATIONS, count);
    let freed = |count| survey.recorded.known(needs::FREES, count);
    let batched = &[EventKind::MmPageFreeBatched];
    let by_type = |types: &[u64]| type_names().into_iter().map(type_key).zip(types.iter().copied()).collect();
    let by_order = orders.allocated.iter().zip(orders.freed).enumerate();
    let by_order = by_order.map(|(order, (types, count))| ByOrder {
        order,
        allocated: survey.recorded.known(needs::ALLOCATIONS, types.as_slice()).map(by_type),
        freed: freed(count),
    });
    Orders {
        by_order: by_order.filter(ByOrder::is_used).collect(),
        allocated_blocks: allocated(orders.allocated_blocks()),
        allocated_pages: allocated(orders.allocated_pages()),
        freed_blocks: freed(orders.freed_blocks()),
        freed_pages: freed(orders.freed_pages()),
        freed_in_batches: survey.recorded.known(batched, orders.freed_in_batches),
        failed: allocated(orders.failed),
        impossible: orders.impossible,
    }
}

fn cpus(survey: &Survey) -> Cpus {
    let (cpus, recorded) = (&survey.cpus, &survey.recorded);
    let of_load = |count: u64| recorded.known(needs::LOAD, count);
    let each = cpus.each.iter().enumerate().filter(|(_, totals)| totals.events > 0);
    let pairs = cpus.matrix.iter().enumerate().flat_map(|(from, row)| {
        let used = row.iter().enumerate().filter(|(_, blocks)| **blocks > 0);
        used.map(move |(to, blocks)| Pair { allocating_cpu: from, freeing_cpu: to, blocks: *blocks })
    });
    Cpus {
        each: each
            .map(|(cpu, &CpuTotals { events, allocated_pages, freed_pages })| Cpu {
                cpu,
                events,
                allocated_pages: recorded.known(needs::ALLOCATIONS, allocated_pages),
                freed_pages: recorded.known(needs::FREES, freed_pages),
            })
            .collect(),
        matrix: recorded.known(needs::LOAD, pairs.collect()),
        beyond_matrix: of_load(cpus.beyond_matrix),
        local_blocks: of_load(cpus.local_blocks),
        local_pages: of_load(cpus.local_pages),
        remote_blocks: of_load(cpus.remote_blocks),
        remote_pages: of_load(cpus.remote_pages),
        remote_percent: percent(cpus.remote_blocks, cpus.local_blocks + cpus.remote_blocks)
            .filter(|_| recorded.has(needs::LOAD)),
    }
}

fn kernel(survey: &Survey) -> Kernel<'_> {
    let (kernel, recorded) = (&survey.kernel, &survey.recorded);
    let of = |kind: EventKind, count: u64| recorded.known(&[kind], count);
    let runs = |needed, counts| recorded.known(needed, counts);
    let zone_locks = recorded.known(needs::ZONE_WAITS, &kernel.zone_locks);
    Kernel {
        hit_percent: kernel_hit_percent(survey),
        refills: runs(needs::REFILLS, &kernel.refills),
        drains: runs(needs::DRAINS, &kernel.drains),
        direct_blocks: recorded.known(needs::ZONE_PAGES, kernel.direct_blocks),
        direct_pages: recorded.known(needs::ZONE_PAGES, kernel.direct_pages),
        bulk_calls: of(EventKind::BulkAllocEntry, kernel.bulk_calls),
        bulk_pages_asked: of(EventKind::BulkAllocEntry, kernel.bulk_pages_asked),
        bulk_pages_got: of(EventKind::BulkAllocReturn, kernel.bulk_pages_got),
        extfrag: of(EventKind::MmPageAllocExtfrag, kernel.extfrag),
        extfrag_ownership_changes: of(EventKind::MmPageAllocExtfrag, kernel.extfrag_ownership_changes),
        vmstat_ticks: of(EventKind::WorkqueueExecuteStart, kernel.vmstat_ticks),
        lru_drains: of(EventKind::WorkqueueExecuteStart, kernel.lru_drains),
        spin_wait_ns: runs(needs::WAITS, &kernel.spin_waits),
        other_wait_ns: other_waits(survey),
        zone_lock_waits: zone_locks.map(ZoneLockWaits::of),
        unpaired_waits: recorded.known(needs::WAITS, kernel.unpaired_waits),
        kswapd_wakes: of(EventKind::KswapdWake, kernel.kswapd_wakes),
        kswapd_sleeps: of(EventKind::KswapdSleep, kernel.kswapd_sleeps),
        direct_reclaims: of(EventKind::DirectReclaimBegin, kernel.direct_reclaims),
        direct_reclaimed_pages: of(EventKind::DirectReclaimEnd, kernel.direct_reclaimed_pages),
        page_faults: of(EventKind::PageFaultUser, kernel.page_faults),
        forks: of(EventKind::SchedProcessFork, kernel.forks),
    }
}
