//! Writes a view as text for programs that collect metrics.
//!
//! Format: OpenMetrics 1.0 (`application/openmetrics-text`). All metrics are gauges. Rates cover the last
//! interval.

use std::fmt::Write as _;

use crate::flow::Bounds;
use crate::verdict::{Answer, Share};
use crate::view::View;

/// Returns the text of all metrics of a view. The text ends with `# EOF`.
#[must_use]
pub fn openmetrics(view: &View) -> String {
    let mut text = Exposition::default();
    totals(view, &mut text);
    zones(view, &mut text);
    pagesets(view, &mut text);
    counted(view, &mut text);
    zone_lock(view, &mut text);
    verdict(view, &mut text);
    text.0 + "# EOF\n"
}

fn totals(view: &View, text: &mut Exposition) {
    let totals = &view.totals;
    let one = |value: Option<f64>| value.map(|value| (Labels::default(), value));
    text.gauge(
        "pageset_interval_seconds",
        "seconds",
        "Time between the two readings.",
        [(Labels::default(), view.interval_ns as f64 / 1e9)],
    );
    text.gauge(
        "pageset_allocated_pages_per_second",
        "",
        "Pages allocated, by pgalloc of /proc/vmstat.",
        one(totals.allocated_pages_per_s),
    );
    text.gauge(
        "pageset_freed_pages_per_second",
        "",
        "Pages freed, by pgfree of /proc/vmstat.",
        one(totals.freed_pages_per_s),
    );
}

fn zones(view: &View, text: &mut Exposition) {
    let mut each = |name: &str, help: &str, value: fn(&crate::view::ZoneView) -> Option<f64>| {
        let samples = view.zones.iter().filter_map(|zone| {
            let labels = Labels::default().with("node", zone.node).with("zone", zone.zone);
            Some((labels, value(zone)?))
        });
        text.gauge(name, "", help, samples);
    };
    each("pageset_zone_managed_pages", "Pages of the allocator.", |zone| Some(zone.managed_pages as f64));
    each("pageset_zone_free_pages", "Free pages, without those in page sets.", |zone| {
        Some(zone.free_pages as f64)
    });
    each("pageset_zone_pcp_pages", "Pages in the page sets of the zone.", |zone| Some(zone.pcp_pages as f64));
    each("pageset_zone_above_low_pages", "Free pages above the low watermark.", |zone| {
        Some(zone.above_low_pages as f64)
    });
    let mut bound = |name: &str, help: &str, of: fn(&crate::flow::Flow) -> Bounds| {
        let samples = view.zones.iter().flat_map(|zone| {
            let bounds = zone.flow.as_ref().map(of);
            let ends = [
                ("at_least", bounds.map(|bounds| bounds.at_least)),
                ("at_most", bounds.and_then(|bounds| bounds.at_most)),
            ];
            ends.into_iter().filter_map(|(end, value)| {
                let labels =
                    Labels::default().with("node", zone.node).with("zone", zone.zone).with("bound", end);
                Some((labels, value?))
            })
        });
        text.gauge(name, "", help, samples);
    };
    bound(
        "pageset_zone_refilled_pages_per_second",
        "Estimated bounds of pages that page sets fetched from the zone.",
        |flow| flow.refilled_pages_per_s,
    );
    bound(
        "pageset_zone_drained_pages_per_second",
        "Estimated bounds of pages that page sets gave back to the zone.",
        |flow| flow.drained_pages_per_s,
    );
}

fn pagesets(view: &View, text: &mut Exposition) {
    let mut each =
        |name: &str, unit: &str, help: &str, value: fn(&crate::view::PagesetView) -> Option<f64>| {
            let samples = view.pagesets.iter().filter_map(|pageset| {
                let labels = Labels::default().with("node", pageset.node).with("zone", pageset.zone);
                Some((labels.with("cpu", pageset.cpu), value(pageset)?))
            });
            text.gauge(name, unit, help, samples);
        };
    each("pageset_count_pages", "", "Pages in the page set.", |set| Some(set.count.into()));
    each("pageset_high_pages", "", "Limit of the page set.", |set| Some(set.high.into()));
    each("pageset_high_min_pages", "", "Lower bound of the limit.", |set| set.high_min.map(f64::from));
    each("pageset_high_max_pages", "", "Upper bound of the limit.", |set| set.high_max.map(f64::from));
    each("pageset_batch_pages", "", "Pages that move at a time.", |set| Some(set.batch.into()));
    each("pageset_unchanged_seconds", "seconds", "For how long every reading has shown this count.", |set| {
        Some(set.unchanged_ns as f64 / 1e9)
    });
}

fn counted(view: &View, text: &mut Exposition) {
    let Some(counted) = &view.counted else { return };
    let mut each = |name: &str, help: &str, value: fn(&crate::view::CpuRates) -> Option<f64>| {
        let samples = counted
            .cpus
            .iter()
            .filter_map(|rates| Some((Labels::default().with("cpu", rates.cpu?), value(rates)?)));
        text.gauge(name, "", help, samples);
    };
    each("pageset_refilled_blocks_per_second", "Events of kmem:mm_page_alloc_zone_locked.", |cpu| {
        cpu.refilled_blocks_per_s
    });
    each("pageset_drained_blocks_per_second", "Events of kmem:mm_page_pcpu_drain.", |cpu| {
        cpu.drained_blocks_per_s
    });
    each("pageset_refills_per_second", "Events of kmem:mm_page_pcpu_refill.", |cpu| cpu.refills_per_s);
    each(
        "pageset_contended_spin_locks_per_second",
        "Events of lock:contention_begin of spin locks, of zones and all others.",
        |cpu| cpu.contended_spin_locks_per_s,
    );
}

fn zone_lock(view: &View, text: &mut Exposition) {
    let Some(zone_lock) = &view.zone_lock else { return };
    let each = |value: fn(&crate::zone_lock::CallerView) -> f64| {
        let callers = zone_lock.callers.iter();
        callers.map(move |row| (Labels::default().with("caller", row.caller), value(row)))
    };
    text.gauge(
        "pageset_lock_waits_per_second",
        "",
        "Waits for spinning locks, by call chain; those for zone locks are all but elsewhere and unknown.",
        each(|row| row.waits_per_s),
    );
    text.gauge(
        "pageset_lock_wait_ratio",
        "ratio",
        "Part of the time of all CPUs that they waited, by call chain.",
        each(|row| row.wait_percent / 100.0),
    );
}

fn verdict(view: &View, text: &mut Exposition) {
    let Some(verdict) = view.verdict else { return };
    text.gauge(
        "pageset_verdict",
        "",
        "Whether a setting of page sets may save CPU time that is worth a change, in this interval: 1 for the answer.",
        Answer::ALL.map(|answer| {
            let labels = Labels::default().with("answer", answer.name());
            (labels, f64::from(u8::from(answer == verdict.answer)))
        }),
    );
    let shares = |of, share: Option<Share>| {
        let ends = share.map(|share| [("estimate", share.estimate), ("at_most", share.at_most)]);
        let labels = move |bound: &str| Labels::default().with("of", of).with("bound", bound);
        ends.into_iter().flatten().map(move |(bound, percent)| (labels(bound), percent / 100.0))
    };
    let waits = verdict.waits_percent.map(|percent| Share { estimate: percent, at_most: percent });
    text.gauge(
        "pageset_cpu_time_ratio",
        "ratio",
        "Part of the busy time of all CPUs that went to zone visits and to waits for zone locks.",
        shares("waits", waits)
            .chain(shares("visits", verdict.visits_percent))
            .chain(shares("all", verdict.all_percent)),
    );
}

/// The text that is written so far.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    /// Writes a metric with its samples, or nothing if there are no samples. The name must end with the unit,
    /// unless the unit is empty.
    fn gauge(
        &mut self,
        name: &str,
        unit: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        // Writing to memory cannot fail.
        let _ = writeln!(self.0, "# TYPE {name} gauge");
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {}", escaped(help));
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{} {value}", labels.text());
        }
    }
}

/// Labels that distinguish the samples of a metric.
#[derive(Default)]
struct Labels(Vec<String>);

impl Labels {
    fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.0.push(format!("{name}=\"{}\"", escaped(&value.to_string())));
        self
    }

    fn text(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!("{{{}}}", self.0.join(",")) }
    }
}

/// Escapes help texts and label values as the format requires.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests;
