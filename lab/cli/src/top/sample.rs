//! A view (what `pageset top` reads in one interval) of an invented machine, for tests.

use pageset_live::{Bounds, Counted, CpuRates, Flow, PagesetView, Totals, View, ZoneView};

/// Returns a view of one node with two zones. In the zone `Normal`, the page set of CPU n holds 100 - n
/// pages, and has lost 10 n pages in the interval.
pub(super) fn view(cpus: u32) -> View {
    let bounds = |at_least, at_most| Bounds { at_least, at_most };
    let zone = |zone, pages: u64| ZoneView {
        node: 0,
        zone,
        managed_pages: pages,
        free_pages: pages / 2,
        min: 100,
        low: 200,
        high: 300,
        above_low_pages: 400,
        pcp_pages: 90,
        flow: Some(Flow {
            refilled_pages_per_s: bounds(3.0, Some(7.0)),
            drained_pages_per_s: bounds(0.0, None),
        }),
    };
    let pageset = |zone, cpu: u32| PagesetView {
        node: 0,
        zone,
        cpu,
        count: if zone == "Normal" { 100 - cpu } else { 0 },
        change: Some(if zone == "Normal" { -10 * i64::from(cpu) } else { 0 }),
        high: 500,
        high_min: Some(200),
        high_max: None,
        batch: 63,
        unchanged_ns: 1_500_000_000,
    };
    let rates = |cpu| CpuRates { cpu, refilled_blocks_per_s: Some(12.0), ..CpuRates::default() };
    View {
        interval_ns: 1_000_000_000,
        busy_ns: None,
        totals: Totals {
            cpus: cpus as usize,
            pcp_pages: 180,
            free_pages: 5000,
            allocated_pages_per_s: Some(7.0),
            freed_pages_per_s: None,
        },
        zones: vec![zone("DMA32", 2000), zone("Normal", 8000)],
        pagesets: ["DMA32", "Normal"]
            .into_iter()
            .flat_map(|zone| (0..cpus).map(move |cpu| pageset(zone, cpu)))
            .collect(),
        counted: Some(Counted { total: rates(None), cpus: (0..cpus).map(|cpu| rates(Some(cpu))).collect() }),
        zone_lock: None,
        verdict: None,
        missing: vec!["No time is measured.".to_owned()],
    }
}
