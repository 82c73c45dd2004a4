//! A survey in JSON. Keys are stable; times are nanoseconds, sizes pages.

use std::collections::BTreeMap;

use pageset_report::{Histogram, Provenance};
use pageset_trace::TraceInfo;
use pageset_workload::{CpuTotals, Log2Counts, Runs, Survey, ZoneLocks, ZoneState};
use serde::Serialize;

use super::sections::{type_key, type_names};
use super::{histogram, kernel_hit_percent, percent};
use crate::layouts::LayoutOrigin;
use crate::origin::TraceDocument;

#[derive(Serialize)]
pub(super) struct StatDocument<'a> {
    trace: TraceDocument,
    /// Events by tracepoint.
    events: BTreeMap<&'static str, u64>,
    orders: Orders,
    cpus: Cpus,
    lifetimes: Lifetimes,
    bursts: Bursts,
    kernel: Kernel,
    zones: Vec<Zone>,
    provenance: &'a Provenance,
}

#[derive(Serialize)]
struct Orders {
    /// Orders without any block are left out.
    by_order: Vec<ByOrder>,
    allocated_blocks: u64,
    allocated_pages: u64,
    freed_blocks: u64,
    freed_pages: u64,
    freed_in_batches: u64,
    failed: u64,
    impossible: u64,
}

#[derive(Serialize)]
struct ByOrder {
    order: usize,
    /// Blocks by migratetype.
    allocated: BTreeMap<String, u64>,
    freed: u64,
}

impl ByOrder {
    fn is_used(&self) -> bool {
        self.freed > 0 || self.allocated.values().any(|blocks| *blocks > 0)
    }
}

#[derive(Serialize)]
struct Cpus {
    each: Vec<Cpu>,
    /// Blocks; pairs without any are left out.
    matrix: Vec<Pair>,
    beyond_matrix: u64,
    local_blocks: u64,
    local_pages: u64,
    remote_blocks: u64,
    remote_pages: u64,
    remote_percent: Option<f64>,
}

#[derive(Serialize)]
struct Cpu {
    cpu: usize,
    events: u64,
    allocated_pages: u64,
    freed_pages: u64,
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
    refills: Distribution,
    drains: Distribution,
    direct_blocks: u64,
    direct_pages: u64,
    bulk_calls: u64,
    bulk_pages_asked: u64,
    bulk_pages_got: u64,
    extfrag: u64,
    extfrag_ownership_changes: u64,
    vmstat_ticks: u64,
    lru_drains: u64,
    spin_wait_ns: Distribution,
    other_wait_ns: Distribution,
    zone_lock_waits: ZoneLockWaits,
    unpaired_waits: u64,
    kswapd_wakes: u64,
    kswapd_sleeps: u64,
    direct_reclaims: u64,
    direct_reclaimed_pages: u64,
    page_faults: u64,
    forks: u64,
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
        let events = survey.kinds.iter().filter(|(_, count)| *count > 0);
        Self {
            trace: TraceDocument::new(info, survey.events, seconds, survey.lost, machine.as_ref()),
            events: events.map(|(kind, count)| (kind.name(), *count)).collect(),
            orders: orders(survey),
            cpus: cpus(survey),
            lifetimes: lifetimes(survey),
            bursts: Bursts {
                allocations: burst(&survey.bursts.allocations),
                frees: burst(&survey.bursts.frees),
                peak_per_ms: survey.bursts.peak_per_ms,
                peak_at_ns: survey.bursts.peak_at_ns,
            },
            kernel: kernel(survey),
            zones: zones(survey),
            provenance,
        }
    }
}

fn orders(survey: &Survey) -> Orders {
    let orders = &survey.orders;
    let by_order =
        orders.allocated.iter().zip(orders.freed).enumerate().map(|(order, (types, freed))| ByOrder {
            order,
            allocated: type_names().into_iter().map(type_key).zip(types.iter().copied()).collect(),
            freed,
        });
    Orders {
        by_order: by_order.filter(ByOrder::is_used).collect(),
        allocated_blocks: orders.allocated_blocks(),
        allocated_pages: orders.allocated_pages(),
        freed_blocks: orders.freed_blocks(),
        freed_pages: orders.freed_pages(),
        freed_in_batches: orders.freed_in_batches,
        failed: orders.failed,
        impossible: orders.impossible,
    }
}

fn cpus(survey: &Survey) -> Cpus {
    let cpus = &survey.cpus;
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
                allocated_pages,
                freed_pages,
            })
            .collect(),
        matrix: pairs.collect(),
        beyond_matrix: cpus.beyond_matrix,
        local_blocks: cpus.local_blocks,
        local_pages: cpus.local_pages,
        remote_blocks: cpus.remote_blocks,
        remote_pages: cpus.remote_pages,
        remote_percent: percent(cpus.remote_blocks, cpus.local_blocks + cpus.remote_blocks),
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
    let kernel = &survey.kernel;
    Kernel {
        hit_percent: kernel_hit_percent(survey),
        refills: distribution(&kernel.refills),
        drains: distribution(&kernel.drains),
        direct_blocks: kernel.direct_blocks,
        direct_pages: kernel.direct_pages,
        bulk_calls: kernel.bulk_calls,
        bulk_pages_asked: kernel.bulk_pages_asked,
        bulk_pages_got: kernel.bulk_pages_got,
        extfrag: kernel.extfrag,
        extfrag_ownership_changes: kernel.extfrag_ownership_changes,
        vmstat_ticks: kernel.vmstat_ticks,
        lru_drains: kernel.lru_drains,
        spin_wait_ns: distribution(&kernel.spin_waits),
        other_wait_ns: distribution(&kernel.other_waits),
        zone_lock_waits: ZoneLockWaits::of(&kernel.zone_locks),
        unpaired_waits: kernel.unpaired_waits,
        kswapd_wakes: kernel.kswapd_wakes,
        kswapd_sleeps: kernel.kswapd_sleeps,
        direct_reclaims: kernel.direct_reclaims,
        direct_reclaimed_pages: kernel.direct_reclaimed_pages,
        page_faults: kernel.page_faults,
        forks: kernel.forks,
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
