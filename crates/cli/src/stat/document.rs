//! A survey in JSON. Keys are stable; times are nanoseconds, sizes pages.

use std::collections::BTreeMap;

use pageset_replay::recorded::needs;
use pageset_replay::sites::Sites;
use pageset_replay::who::Who;
use pageset_replay::{CpuTotals, Log2Counts, Runs, Survey, ZoneLocks, ZoneState};
use pageset_report::{Histogram, Provenance};
use pageset_trace::{Counts, EventKind, TraceInfo};
use serde::Serialize;

use super::sections::{other_waits, type_key, type_names};
use super::{histogram, kernel_hit_percent, percent, warnings};
use crate::layouts::LayoutOrigin;
use crate::origin::TraceDocument;

#[derive(Serialize)]
pub(super) struct StatDocument<'a> {
    trace: TraceDocument,
    /// Events by tracepoint.
    events: BTreeMap<&'static str, u64>,
    /// Tracepoints that are not known to be recorded. What needs their events is `null`.
    not_recorded: Vec<&'static str>,
    orders: Orders,
    cpus: Cpus,
    lifetimes: Option<Lifetimes>,
    bursts: Option<Bursts>,
    kernel: Kernel,
    /// What the kernel counted, in a recording without events.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
    /// Each task's part. It is absent if the recording does not tell tasks apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<Who>,
    /// Call sites, and locks that CPUs waited for. It is absent if the recording has no call chains.
    #[serde(skip_serializing_if = "Option::is_none")]
    sites: Option<Sites>,
    zones: Vec<Zone>,
    warnings: Vec<String>,
    provenance: &'a Provenance,
}

#[derive(Serialize)]
struct Orders {
    /// Orders without any block are left out.
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
    /// Blocks by migratetype.
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
    /// Blocks; pairs without any are left out.
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

#[derive(Serialize)]
struct Lifetimes {
    ns: Distribution,
    alive_at_end: u64,
    alive_pages_at_end: u64,
    unmatched_frees: u64,
    unmatched_pages: u64,
    parts: u64,
    freed_together: u64,
    allocated_twice: u64,
    not_followed: u64,
}

/// Values by ranges of powers of two. A percentile is the end of the range it lies in.
#[derive(Serialize)]
struct Distribution {
    count: u64,
    sum: u64,
    mean: Option<f64>,
    p50_at_most: Option<u64>,
    p90_at_most: Option<u64>,
    p99_at_most: Option<u64>,
    max: u64,
    ranges: Histogram,
}

#[derive(Serialize)]
struct Bursts {
    allocations: Burst,
    frees: Burst,
    peak_per_ms: u64,
    peak_at_ns: u64,
}

#[derive(Serialize)]
struct Burst {
    pages: Distribution,
    longest_cpu: u16,
    longest_at_ns: u64,
}

/// Waits for zone locks: known by call chains, or by what the waiter did next.
#[derive(Serialize)]
struct ZoneLockWaits {
    waits: u64,
    wait_ns: u64,
    by_caller: Vec<CallerWaits>,
}

/// Those of which a call chain says who waited.
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
struct Kernel {
    hit_percent: Option<f64>,
    refills: Option<Distribution>,
    drains: Option<Distribution>,
    direct_blocks: Option<u64>,
    direct_pages: Option<u64>,
    bulk_calls: Option<u64>,
    bulk_pages_asked: Option<u64>,
    bulk_pages_got: Option<u64>,
    extfrag: Option<u64>,
    extfrag_ownership_changes: Option<u64>,
    vmstat_ticks: Option<u64>,
    lru_drains: Option<u64>,
    spin_wait_ns: Option<Distribution>,
    other_wait_ns: Option<Distribution>,
    zone_lock_waits: Option<ZoneLockWaits>,
    unpaired_waits: Option<u64>,
    kswapd_wakes: Option<u64>,
    kswapd_sleeps: Option<u64>,
    direct_reclaims: Option<u64>,
    direct_reclaimed_pages: Option<u64>,
    page_faults: Option<u64>,
    forks: Option<u64>,
}

#[derive(Serialize)]
struct Zone {
    node: u16,
    name: &'static str,
    before: Option<State>,
    after: Option<State>,
    pcp_pages_peak: Option<u64>,
}

#[derive(Serialize)]
struct State {
    managed: u64,
    free: u64,
    min: u64,
    low: u64,
    high: u64,
    pcp_pages: u64,
    pagesets: Vec<Pageset>,
}

#[derive(Serialize)]
struct Pageset {
    cpu: u32,
    count: u32,
    high: u32,
    batch: u32,
}

impl<'a> StatDocument<'a> {
    pub(super) fn new(info: &TraceInfo, survey: &Survey, provenance: &'a Provenance) -> Self {
        let seconds = survey.first_ns.zip(survey.last_ns).map(|(first, last)| (last - first) as f64 / 1e9);
        let machine = info.machine.clone().map(|machine| (machine, LayoutOrigin::Recorded));
        let recorded = &survey.recorded;
        let events = survey.kinds.iter().filter(|(_, count)| *count > 0);
        Self {
            trace: TraceDocument::new(info, survey.events, seconds, survey.lost, machine.as_ref()),
            events: events.map(|(kind, count)| (kind.name(), *count)).collect(),
            not_recorded: recorded.lacking(&EventKind::ALL).into_iter().map(EventKind::name).collect(),
            orders: orders(survey),
            cpus: cpus(survey),
            lifetimes: recorded.known(needs::LOAD, survey).map(lifetimes),
            bursts: recorded.known(needs::LOAD, &survey.bursts).map(|bursts| Bursts {
                allocations: burst(&bursts.allocations),
                frees: burst(&bursts.frees),
                peak_per_ms: bursts.peak_per_ms,
                peak_at_ns: bursts.peak_at_ns,
            }),
            kernel: kernel(survey),
            counts: info.counts.clone(),
            who: Who::new(info, survey),
            sites: Sites::new(info, survey),
            zones: zones(survey),
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

fn lifetimes(survey: &Survey) -> Lifetimes {
    let lifetimes = &survey.lifetimes;
    Lifetimes {
        ns: distribution(&lifetimes.ns),
        alive_at_end: lifetimes.alive_at_end,
        alive_pages_at_end: lifetimes.alive_pages_at_end,
        unmatched_frees: lifetimes.unmatched_frees,
        unmatched_pages: lifetimes.unmatched_pages,
        parts: lifetimes.parts,
        freed_together: lifetimes.freed_together,
        allocated_twice: lifetimes.allocated_twice,
        not_followed: lifetimes.not_followed,
    }
}

fn distribution(counts: &Log2Counts) -> Distribution {
    Distribution {
        count: counts.total(),
        sum: counts.sum,
        mean: counts.mean(),
        p50_at_most: counts.percentile_at_most(50),
        p90_at_most: counts.percentile_at_most(90),
        p99_at_most: counts.percentile_at_most(99),
        max: counts.max,
        ranges: histogram(counts),
    }
}

fn burst(runs: &Runs) -> Burst {
    Burst {
        pages: distribution(&runs.pages),
        longest_cpu: runs.longest_cpu,
        longest_at_ns: runs.longest_at_ns,
    }
}

fn kernel(survey: &Survey) -> Kernel {
    let (kernel, recorded) = (&survey.kernel, &survey.recorded);
    let of = |kind: EventKind, count: u64| recorded.known(&[kind], count);
    let runs = |needed, counts| recorded.known(needed, counts).map(distribution);
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
        other_wait_ns: other_waits(survey).map(distribution),
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

fn zones(survey: &Survey) -> Vec<Zone> {
    let zones = survey.zones.iter().map(|zone| Zone {
        node: zone.node.0,
        name: zone.kind.name(),
        before: zone.before.as_ref().map(state),
        after: zone.after.as_ref().map(state),
        pcp_pages_peak: zone.pcp_pages_peak,
    });
    zones.collect()
}

fn state(state: &ZoneState) -> State {
    let pagesets = state.pagesets.iter().map(|pageset| Pageset {
        cpu: pageset.cpu,
        count: pageset.count,
        high: pageset.high,
        batch: pageset.batch,
    });
    State {
        managed: state.managed,
        free: state.free,
        min: state.min,
        low: state.low,
        high: state.high,
        pcp_pages: state.pcp_pages(),
        pagesets: pagesets.collect(),
    }
}
