//! The page allocator's activity in the last interval. Sizes are pages. The JSON document uses the same keys.

use std::collections::BTreeMap;

use pageset_trace::{VisitCost, ZoneDescription};
use serde::Serialize;

use crate::counters::{CpuCounts, Tracepoint};
use crate::difference::{change, increase, per_s};
use crate::flow::{Flow, counted, pcp_pages, pgalloc};
use crate::reading::Reading;
use crate::unchanged::Unchanged;
use crate::verdict::Verdict;
use crate::zone_lock::ZoneLockView;

/// The activity of the page allocator in one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct View {
    /// Time between the readings at the two ends of the interval, in nanoseconds.
    pub interval_ns: u64,
    /// Busy time of all CPUs in the interval. `None` if the readings are not of the running kernel.
    pub busy_ns: Option<u64>,
    /// Sums over all zones.
    pub totals: Totals,
    /// The zones that have frames, in the order of `/proc/zoneinfo`.
    pub zones: Vec<ZoneView>,
    /// Page sets by node, zone and CPU.
    pub pagesets: Vec<PagesetView>,
    /// Exact rates of tracepoints. `None` if the kernel did not count tracepoints.
    pub counted: Option<Counted>,
    /// Waits for zone locks. `None` if the waits could not be recorded.
    pub zone_lock: Option<ZoneLockView>,
    /// Whether page sets take so much CPU time that a change may pay. [`View::judge`] sets this field.
    pub verdict: Option<Verdict>,
    /// Sentences that name the missing data and the remedy.
    pub missing: Vec<String>,
}

/// Sums over all zones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Totals {
    /// Number of CPUs that have page sets.
    pub cpus: usize,
    /// Pages in all page sets.
    pub pcp_pages: u64,
    /// Free pages, without the pages in page sets.
    pub free_pages: u64,
    /// Allocated pages, by `pgalloc_*`.
    pub allocated_pages_per_s: Option<f64>,
    /// Freed pages, by `pgfree`.
    pub freed_pages_per_s: Option<f64>,
}

/// A zone at the end of the interval, and its flow of pages in the interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ZoneView {
    /// NUMA node.
    pub node: u16,
    /// Name in `/proc/zoneinfo`.
    pub zone: &'static str,
    /// Pages managed by the allocator.
    pub managed_pages: u64,
    /// Free pages, without the pages in page sets.
    pub free_pages: u64,
    /// Minimum watermark.
    pub min: u64,
    /// Low watermark.
    pub low: u64,
    /// High watermark.
    pub high: u64,
    /// Free pages minus the low watermark. If the number is negative, requests wake the reclaimer.
    pub above_low_pages: i64,
    /// Pages in the zone's page sets.
    pub pcp_pages: u64,
    /// Bounds of the flow. `None` if the zone is new, or if its memory was added or removed.
    #[serde(flatten)]
    pub flow: Option<Flow>,
}

/// The page set of a CPU in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PagesetView {
    /// NUMA node.
    pub node: u16,
    /// Name in `/proc/zoneinfo`.
    pub zone: &'static str,
    /// The CPU.
    pub cpu: u32,
    /// Pages held.
    pub count: u32,
    /// Change since the previous reading. `None` if the page set has just appeared.
    pub change: Option<i64>,
    /// The limit: a free that brings `count` to this number causes a drain.
    pub high: u32,
    /// Lower bound of `high`. `None` if the kernel does not print this bound.
    pub high_min: Option<u32>,
    /// Upper bound of `high`. `None` if the kernel does not print this bound.
    pub high_max: Option<u32>,
    /// Pages that a plain refill or drain moves.
    pub batch: u32,
    /// How long every reading has shown this count, in nanoseconds.
    pub unchanged_ns: u64,
}

/// Exact rates of tracepoints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counted {
    /// Sums over all CPUs. In the sums, the field `cpu` is `None`.
    pub total: CpuRates,
    /// The rates of each CPU.
    pub cpus: Vec<CpuRates>,
}

/// Rates of tracepoints on a CPU. A rate is `None` if the kernel does not have the tracepoint, or if the CPU
/// has just appeared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CpuRates {
    /// The CPU. In the total of all CPUs, this field is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Blocks that left free lists: `kmem:mm_page_alloc_zone_locked`.
    pub refilled_blocks_per_s: Option<f64>,
    /// Blocks that page sets gave back: `kmem:mm_page_pcpu_drain`.
    pub drained_blocks_per_s: Option<f64>,
    /// Refills: `kmem:mm_page_pcpu_refill`.
    pub refills_per_s: Option<f64>,
    /// Waits for spin locks that began, for zone locks and all other spin locks: `lock:contention_begin`.
    pub contended_spin_locks_per_s: Option<f64>,
}

impl View {
    /// Computes the activity between two readings.
    #[must_use]
    pub fn between(earlier: &Reading, later: &Reading, unchanged: &Unchanged) -> Self {
        let interval_ns = later.at_ns.saturating_sub(earlier.at_ns);
        let mut view = Self {
            interval_ns,
            busy_ns: None,
            totals: Totals::between(earlier, later, interval_ns),
            zones: Vec::new(),
            pagesets: Vec::new(),
            counted: None,
            zone_lock: None,
            verdict: None,
            missing: Vec::new(),
        };
        for zone in &later.zoneinfo.zones {
            let before = earlier.zoneinfo.zone(zone.node, zone.kind);
            let flow = before.and_then(|before| {
                Flow::between((before, &earlier.vmstat), (zone, &later.vmstat), interval_ns)
            });
            view.zones.push(ZoneView::new(zone, flow));
            let counts: BTreeMap<u32, u32> = before
                .map(|before| before.pagesets.iter().map(|pageset| (pageset.cpu, pageset.count)).collect())
                .unwrap_or_default();
            view.pagesets.extend(zone.pagesets.iter().map(|pageset| PagesetView {
                node: zone.node,
                zone: zone.kind.name(),
                cpu: pageset.cpu,
                count: pageset.count,
                change: counts.get(&pageset.cpu).map(|count| change((*count).into(), pageset.count.into())),
                high: pageset.high,
                high_min: pageset.high_min,
                high_max: pageset.high_max,
                batch: pageset.batch,
                unchanged_ns: unchanged.ns(zone.node, zone.kind, pageset.cpu, later.at_ns),
            }));
        }
        view
    }

    /// Adds the verdict that [`Verdict::of`] returns.
    pub fn judge(&mut self, cost: Option<&VisitCost>, worth_percent: f64) {
        self.verdict = Some(Verdict::of(self, cost, worth_percent));
    }
}

impl Totals {
    fn between(earlier: &Reading, later: &Reading, interval_ns: u64) -> Self {
        let zones = &later.zoneinfo.zones;
        let sum = |pages: fn(&ZoneDescription) -> u64| {
            zones.iter().fold(0_u64, |sum, zone| sum.saturating_add(pages(zone)))
        };
        let kinds = pageset_core::ZoneKind::ALL.map(pgalloc);
        let allocs: Vec<_> = kinds.into_iter().filter(|name| later.vmstat.get(name).is_some()).collect();
        let rate = |names: &[&str]| {
            let pages = if names.is_empty() { None } else { counted(names, &earlier.vmstat, &later.vmstat) };
            pages.and_then(|pages| per_s(pages, interval_ns))
        };
        Self {
            cpus: cpus(later).len(),
            pcp_pages: sum(pcp_pages),
            free_pages: sum(|zone| zone.free),
            allocated_pages_per_s: rate(&allocs),
            freed_pages_per_s: rate(&["pgfree"]),
        }
    }
}

impl ZoneView {
    fn new(zone: &ZoneDescription, flow: Option<Flow>) -> Self {
        Self {
            node: zone.node,
            zone: zone.kind.name(),
            managed_pages: zone.managed,
            free_pages: zone.free,
            min: zone.min,
            low: zone.low,
            high: zone.high,
            above_low_pages: change(zone.low, zone.free),
            pcp_pages: pcp_pages(zone),
            flow,
        }
    }
}

impl Counted {
    /// Computes rates from two readings of the counters, which are `interval_ns` apart.
    #[must_use]
    pub fn between(earlier: &[CpuCounts], later: &[CpuCounts], interval_ns: u64) -> Self {
        let earlier: BTreeMap<u32, &CpuCounts> = earlier.iter().map(|cpu| (cpu.cpu, cpu)).collect();
        let mut sums = [None; Tracepoint::COUNT];
        let mut cpus = Vec::new();
        for later in later {
            let mut increases = [None; Tracepoint::COUNT];
            if let Some(earlier) = earlier.get(&later.cpu) {
                for (index, value) in increases.iter_mut().enumerate() {
                    *value = earlier.counts[index].zip(later.counts[index]).and_then(|(a, b)| increase(a, b));
                    sums[index] = match (sums[index], *value) {
                        (Some(sum), Some(value)) => Some(u64::saturating_add(sum, value)),
                        (sum, value) => sum.or(value),
                    };
                }
            }
            cpus.push(CpuRates::new(Some(later.cpu), increases, interval_ns));
        }
        Self { total: CpuRates::new(None, sums, interval_ns), cpus }
    }
}

impl CpuRates {
    fn new(cpu: Option<u32>, counts: [Option<u64>; Tracepoint::COUNT], interval_ns: u64) -> Self {
        let rate =
            |tracepoint: Tracepoint| counts[tracepoint.index()].and_then(|count| per_s(count, interval_ns));
        Self {
            cpu,
            refilled_blocks_per_s: rate(Tracepoint::MmPageAllocZoneLocked),
            drained_blocks_per_s: rate(Tracepoint::MmPagePcpuDrain),
            refills_per_s: rate(Tracepoint::MmPagePcpuRefill),
            contended_spin_locks_per_s: rate(Tracepoint::ContentionBegin),
        }
    }
}

/// The CPUs that have a page set in any zone of a reading.
pub(crate) fn cpus(reading: &Reading) -> std::collections::BTreeSet<u32> {
    let zones = reading.zoneinfo.zones.iter();
    zones.flat_map(|zone| zone.pagesets.iter().map(|pageset| pageset.cpu)).collect()
}

#[cfg(test)]
mod tests {
    use pageset_trace::{Vmstat, Zoneinfo};

    use super::*;

    fn reading(at_ns: u64, zoneinfo: &str, vmstat: &str) -> Reading {
        let zoneinfo = Zoneinfo::parse(zoneinfo).unwrap();
        Reading { at_ns, zoneinfo, vmstat: Vmstat::parse(vmstat).unwrap() }
    }

    fn zone(name: &str, free: u64, counts: &[(u32, u32)]) -> String {
        let mut text = format!("Node 0, zone {name}\n pages free {free}\n low 30\n managed 100\n");
        for (cpu, count) in counts {
            text += &format!(" cpu: {cpu}\n count: {count}\n high: 9\n batch: 3\n");
        }
        text
    }

    #[test]
    fn zones_and_cpus_come_and_go() {
        let earlier =
            reading(0, &(zone("DMA", 5, &[]) + &zone("Normal", 50, &[(0, 4), (1, 2)])), "pgfree 1\n");
        let later = reading(
            2_000_000_000,
            &(zone("Normal", 20, &[(0, 1), (2, 8)]) + &zone("Movable", 7, &[(0, 3)])),
            "pgfree 5\npgalloc_normal 3\n",
        );
        let mut unchanged = Unchanged::default();
        unchanged.note(&later);
        let view = View::between(&earlier, &later, &unchanged);
        let names: Vec<_> = view.zones.iter().map(|zone| (zone.zone, zone.above_low_pages)).collect();
        assert_eq!(names, [("Normal", -10), ("Movable", -23)]);
        let changes: Vec<_> = view.pagesets.iter().map(|set| (set.zone, set.cpu, set.change)).collect();
        assert_eq!(changes, [("Normal", 0, Some(-3)), ("Normal", 2, None), ("Movable", 0, None)]);
        let flow = view.zones[0].flow.unwrap();
        assert_eq!((flow.refilled_pages_per_s.at_least, flow.refilled_pages_per_s.at_most), (15.0, None));
        assert_eq!(view.zones[1].flow, None);
        assert_eq!((view.totals.cpus, view.totals.pcp_pages, view.totals.free_pages), (2, 12, 27));
        assert_eq!((view.totals.allocated_pages_per_s, view.totals.freed_pages_per_s), (None, Some(2.0)));
    }

    #[test]
    fn counted_rates_are_summed_over_the_cpus_that_stayed() {
        let counts = |cpu, refilled| CpuCounts { cpu, counts: [Some(refilled), Some(1), None, Some(0)] };
        let counted =
            Counted::between(&[counts(0, 10), counts(1, 10)], &[counts(0, 30), counts(2, 99)], 2_000_000_000);
        assert_eq!(counted.total.refilled_blocks_per_s, Some(10.0));
        assert_eq!((counted.total.drained_blocks_per_s, counted.total.refills_per_s), (Some(0.0), None));
        assert_eq!(counted.cpus[1], CpuRates { cpu: Some(2), ..CpuRates::default() });
    }
}
