//! The page's section on CPUs that allocate and free blocks, and on the lifetimes of blocks.

use pageset_replay::Log2Counts;
use pageset_replay::recorded::needs;
use pageset_replay::report_data::ReportData;
use pageset_report::page::{Bar, Bars, Chart, Heat, Layer, Part, Section};

use super::cpu_rows::CpuRows;
use crate::stat::{self, duration};

pub(super) fn section(report_data: &ReportData, heading: String) -> Section {
    let survey = &report_data.examined.survey;
    let mut section = Section::new(heading);
    let (Some(lifetimes), Some(bursts), Some(heat)) =
        (&survey.lifetimes, &survey.bursts, matrix(report_data))
    else {
        let why = survey.recorded.unsaid(needs::LOAD).unwrap_or_default();
        section.push(Part::Text(format!("This recording does not say. {why}")));
        return section;
    };
    section.push(Part::Chart(Chart::Heat(heat)));
    if let Some(beyond) = survey.cpus.beyond_matrix.filter(|blocks| *blocks > 0) {
        section.push(Part::Text(format!(
            "The map does not show {beyond} blocks, because a CPU's number is too large."
        )));
    }
    let pages = |pages: u64| pages.to_string();
    section.push(Part::Bars(vec![
        bars("Lifetimes, from allocation to free", "blocks", &lifetimes.ns, duration),
        bars(
            "Runs of allocations on a CPU without a free, by pages",
            "runs",
            &bursts.allocations.pages,
            pages,
        ),
        bars("Runs of frees on a CPU without an allocation, by pages", "runs", &bursts.frees.pages, pages),
    ]));
    let all = stat::sections(&report_data.examined.info, survey);
    let orders = all.into_iter().find(|section| section.key == "orders");
    section.push(orders.map_or_else(
        || Part::Text("No block was allocated.".to_owned()),
        |orders| Part::Table(orders.table),
    ));
    section
}

/// Draws a heat map of how many blocks each pair of allocating and freeing CPU has.
fn matrix(report_data: &ReportData) -> Option<Heat> {
    let cpus = &report_data.examined.survey.cpus;
    let matrix = cpus.matrix.as_ref()?;
    let rows = CpuRows::new(report_data);
    let row = |cpu: usize| -> Vec<u64> {
        let Some(freed) = matrix.get(cpu).filter(|freed| !freed.is_empty()) else { return Vec::new() };
        let mut row: Vec<u64> =
            rows.cpus.iter().map(|by| freed.get(*by as usize).copied().unwrap_or(0)).collect();
        row.truncate(row.iter().rposition(|blocks| *blocks > 0).map_or(0, |last| last + 1));
        row
    };
    Some(Heat {
        title: "Blocks by the CPU that allocated them (down) and the CPU that freed them (across)".to_owned(),
        text: format!(
            "{} blocks were freed on the CPU that allocated them, {} on another.",
            cpus.local_blocks?, cpus.remote_blocks?
        ),
        row: "allocated on CPU".to_owned(),
        column: "freed on CPU".to_owned(),
        rows: rows.names(),
        groups: rows.groups.clone(),
        span: None,
        columns: rows.names(),
        layers: vec![Layer { name: "blocks".to_owned(), unit: String::new(), cells: rows.cells(row) }],
    })
}

fn bars(title: &str, unit: &str, counts: &Log2Counts, name: impl Fn(u64) -> String) -> Bars {
    let histogram = counts.histogram();
    let bar = |(from, to, value): (u64, u64, u64)| {
        let name = if from == to { name(from) } else { format!("from {}", name(from)) };
        Bar { name, value, range: None }
    };
    Bars { title: title.to_owned(), unit: unit.to_owned(), bars: histogram.ranges().map(bar).collect() }
}
