//! Draws the course of a recording: lines for the busiest CPUs and for the zones, and a map of all CPUs.

use pageset_replay::recorded::needs;
use pageset_replay::report_data::{CpuSamples, Extremes, ReportData, ZoneSamples};
use pageset_replay::{CpuTimeline, Timeline};
use pageset_report::page::{Chart, Heat, Height, Layer, Line, LineChart, Look, Marks, Part, Section, Span};

use super::cpu_rows::CpuRows;
use super::settings;

/// Number of CPUs that are drawn as lines. The map shows all CPUs.
const CPUS_MAX: usize = 8;

const NS_PER_S: f64 = 1e9;

pub(super) fn section(report_data: &ReportData, link: usize, heading: String) -> Section {
    let mut section = Section::new(heading);
    section.push(Part::Facts(vec![("Settings when it began".to_owned(), settings::in_force(report_data))]));
    settings::changes(report_data).into_iter().for_each(|change| section.push(Part::Text(change.text + ".")));
    if !report_data.changes.is_empty() {
        section.push(Part::Text(
            "The charts over time show the whole recording; the verdict is about its longest part under one \
             setting."
                .to_owned(),
        ));
    }
    let shown =
        busiest(&report_data.timeline, report_data.neighbours.iter().map(|group| group.cpus.len()).sum());
    let active = report_data.examined.survey.cpus.each.len();
    if active > shown.len() {
        section.push(Part::Text(format!(
            "{active} CPUs have events. The {} CPUs with the most zone visits are drawn as lines; the map \
             below shows all CPUs.",
            shown.len()
        )));
    }
    if report_data.samples.is_empty() {
        section.push(Part::Text(
            "The recording has no samples of page sets: how many pages they held over time, and how many were free, is not known."
                .to_owned(),
        ));
    }
    for cpu in shown {
        section.push(Part::Chart(Chart::Lines(cpu_lines(report_data, cpu, link))));
    }
    for zone in &report_data.samples.zones {
        let chart = Chart::Lines(zone_lines(report_data, zone, link));
        section.push(if zone.is_quiet() { Part::FoldedChart(chart) } else { Part::Chart(chart) });
    }
    section
}

/// The [`CPUS_MAX`] CPUs with the most refills and drains, sorted by the CPU's number.
fn busiest(timeline: &Timeline, cpus: usize) -> Vec<usize> {
    let visits = |cpu: &usize| {
        let lists = timeline.cpus.get(*cpu).map(|cpu| cpu.refills.iter().chain(&cpu.drains).sum::<u64>());
        std::cmp::Reverse(lists.unwrap_or(0))
    };
    let mut all: Vec<usize> = (0..cpus).collect();
    all.sort_by_key(visits);
    all.truncate(CPUS_MAX);
    all.sort_unstable();
    all
}

fn span(timeline: &Timeline, link: usize) -> Span {
    Span { seconds: timeline.interval_ns as f64 * timeline.intervals as f64 / NS_PER_S, link }
}

fn line(name: &str, look: Look, extremes: &Extremes) -> Line {
    let points = extremes.iter().map(|(at_ns, low, high)| (*at_ns as f64 / NS_PER_S, *low, *high));
    Line { name: name.to_owned(), look, points: points.collect() }
}

fn cpu_lines(report_data: &ReportData, cpu: usize, link: usize) -> LineChart {
    let nothing = CpuTimeline::default();
    let done = report_data.timeline.cpus.get(cpu).unwrap_or(&nothing);
    let recorded = &report_data.examined.survey.recorded;
    let counted = [("refills", needs::REFILLS, &done.refills), ("drains", needs::DRAINS, &done.drains)];
    let counted = counted.into_iter().filter(|(_, needed, _)| recorded.has(needed));
    let counts: Vec<String> =
        counted.clone().map(|(name, _, counts)| format!("{} {name}", counts.iter().sum::<u64>())).collect();
    let counts = if counts.is_empty() {
        "the pages that it moved are not recorded".to_owned()
    } else {
        counts.join(", ")
    };
    let mut text = format!("CPU {cpu}: {counts}.");
    let mut lines = Vec::new();
    if let Some(samples) = report_data.samples.cpus.iter().find(|samples| samples.cpu as usize == cpu) {
        lines.push(line("pages held", Look::Filled, &samples.held));
        lines.push(line("high", Look::Limit, &samples.limit));
        text += &format!(" Pages held {}, high {}.", from_to(&samples.held), from_to(&samples.limit));
    }
    LineChart {
        title: format!("CPU {cpu}: pages in its page sets, all zones together"),
        text,
        unit: "pages".to_owned(),
        height: Height::Linear,
        span: span(&report_data.timeline, link),
        lines,
        marks: counted
            .map(|(name, _, counts)| Marks { name: name.to_owned(), counts: counts.clone() })
            .collect(),
        changes: settings::changes(report_data),
    }
}

fn zone_lines(report_data: &ReportData, zone: &ZoneSamples, link: usize) -> LineChart {
    let name = format!("Node {}, zone {}", zone.node, zone.kind.name());
    let mut lines = vec![line("free pages", Look::Filled, &zone.free)];
    let mut text = format!("{name}: free pages {}.", from_to(&zone.free));
    if let Some((min, low, high)) = zone.watermarks {
        let limit = |name: &str, value| Line {
            name: format!("{name} {value}"),
            look: Look::Limit,
            points: vec![(0.0, value, value)],
        };
        lines.extend([("high", high), ("low", low), ("min", min)].map(|(name, value)| limit(name, value)));
        text += &format!(" Watermarks: min {min}, low {low}, high {high}.");
    }
    LineChart {
        title: format!("{name}: free pages and watermarks"),
        text,
        unit: "pages".to_owned(),
        height: Height::Log,
        span: span(&report_data.timeline, link),
        lines,
        marks: Vec::new(),
        changes: settings::changes(report_data),
    }
}

fn from_to(extremes: &Extremes) -> String {
    let low = extremes.iter().map(|interval| interval.1).min().unwrap_or(0);
    let high = extremes.iter().map(|interval| interval.2).max().unwrap_or(0);
    format!("from {low} to {high}")
}

/// A heat map of all CPUs over time.
pub(super) fn map(report_data: &ReportData, link: usize, heading: String) -> Section {
    let rows = CpuRows::new(report_data);
    let timeline = &report_data.timeline;
    let of = |list: fn(&CpuTimeline) -> &Vec<u64>| {
        rows.cells(|cpu| timeline.cpus.get(cpu).map_or_else(Vec::new, |cpu| list(cpu).clone()))
    };
    let layer = |name: &str, unit: &str, cells| Layer { name: name.to_owned(), unit: unit.to_owned(), cells };
    let recorded = &report_data.examined.survey.recorded;
    let mut layers = Vec::new();
    layers.extend(recorded.known(needs::REFILLS, layer("refills", "", of(|cpu| &cpu.refills))));
    layers.extend(recorded.known(needs::DRAINS, layer("drains", "", of(|cpu| &cpu.drains))));
    let waits = layer("waits for zone locks", "ns", of(|cpu| &cpu.wait_ns));
    layers.extend(recorded.known(needs::ZONE_WAITS, waits));
    let sums: Vec<String> =
        layers.iter().map(|layer| format!("{} {} {}", layer.name, layer.total(), layer.unit)).collect();
    let sums: Vec<&str> = sums.iter().map(|sum| sum.trim_end()).collect();
    if !report_data.samples.is_empty() {
        let samples =
            |cpu: usize| report_data.samples.cpus.iter().find(|samples| samples.cpu as usize == cpu);
        let held = rows.cells(|cpu| samples(cpu).map_or_else(Vec::new, |samples| held(samples, timeline)));
        layers.push(layer("pages held", "pages", held));
    }
    let layers_are_none = layers.is_empty();
    let heat = Heat {
        title: "CPU by time".to_owned(),
        text: format!("A row for each CPU, sorted by node and last-level cache; sums: {}.", sums.join(", ")),
        row: "CPU".to_owned(),
        column: String::new(),
        rows: rows.names(),
        groups: rows.groups.clone(),
        span: Some(span(timeline, link)),
        columns: Vec::new(),
        layers,
    };
    let mut section = Section::new(heading);
    if let Some(why) = recorded.unsaid(needs::VISITS) {
        section.push(Part::Text(format!("This recording does not say what each CPU did when. {why}")));
    }
    if layers_are_none {
        return section;
    }
    section.push(Part::Text(format!(
        "A row for each CPU, grouped by node and last-level cache. A column stands for {:.3} ms. If several columns \
         share a pixel, the pixel shows the largest value.",
        timeline.interval_ns as f64 / 1e6
    )));
    section.push(Part::Chart(Chart::Heat(heat)));
    section
}

/// The largest number of held pages in the samples of each interval. An interval without a sample has the
/// value of the last interval with samples; before the first sample, the value is 0.
fn held(samples: &CpuSamples, timeline: &Timeline) -> Vec<u64> {
    let mut known = samples.held.iter().peekable();
    let mut last = 0;
    let value = |at: usize| {
        let end_ns = timeline.interval_ns.saturating_mul(at as u64 + 1);
        while let Some(interval) = known.next_if(|interval| interval.0 < end_ns) {
            last = interval.2;
        }
        last
    };
    (0..timeline.intervals).map(value).collect()
}
