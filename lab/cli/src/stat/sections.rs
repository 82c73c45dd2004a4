//! Turns a survey (the contents of one recording) into tables, in reading order.

use std::fmt::Write as _;

use pageset_replay::recorded::needs;
use pageset_replay::sites::Sites;
use pageset_replay::who::{Who, percent};
use pageset_replay::{
    Bursts, CallerWaits, Cpus, Lifetimes, Log2Counts, OrderBlocks, Survey, ZoneState, type_key, type_names,
};
use pageset_report::{Cell, Column, Histogram, Matrix, Row, Table, command_line};
use pageset_trace::TraceInfo;

use super::counts;
use crate::sites;
use crate::source;
use crate::who;

/// Titles of tables that need both the allocation and the free of a block.
const MATRIX: &str = "Blocks by allocating and by freeing CPU";
const LIFETIMES: &str = "Lifetimes of blocks, from allocation to free";
/// For each zone, the table of page sets has rows for at most this many CPUs. JSON has all page sets.
const CPUS_SHOWN: usize = 16;

/// A table, and for some tables a drawing that people see.
pub(crate) struct Section {
    /// Name of the table in CSV.
    pub(crate) key: &'static str,
    /// In a table without a column of labels, this number of leading columns together name a row.
    pub(super) keys: usize,
    pub(crate) table: Table,
    pub(super) drawing: Option<String>,
}

pub(super) const fn plain(key: &'static str, table: Table) -> Section {
    Section { key, keys: 1, table, drawing: None }
}

pub(crate) fn sections(info: &TraceInfo, survey: &Survey) -> Vec<Section> {
    let mut sections = match &info.counts {
        Some(counts) => counts::sections(info, counts),
        None => of_events(info, survey),
    };
    let who = Who::new(info, survey);
    let tables = who.iter().flat_map(who::tables);
    let sites = Sites::new(info, survey);
    let tables = tables.chain(sites.iter().flat_map(sites::tables));
    sections.extend(tables.map(|(key, table)| plain(key, table)));
    if !survey.zones.is_empty() {
        sections.push(plain("zones", zones(survey)));
        sections.push(plain("pagesets", pagesets(survey)));
    }
    sections
}

fn of_events(info: &TraceInfo, survey: &Survey) -> Vec<Section> {
    let mut sections = vec![
        plain("summary", summary(info, survey)),
        plain("events", events(survey)),
        plain("orders", orders(survey)),
    ];
    let allocations = "Runs of allocations on a CPU without a free, in pages";
    let frees = "Runs of frees on a CPU without an allocation, in pages";
    match (&survey.cpus.matrix, &survey.lifetimes, &survey.bursts) {
        (Some(counts), Some(found), Some(bursts)) => sections.extend([
            matrix(&survey.cpus, counts),
            lifetimes(found),
            runs("allocation_runs", allocations, &bursts.allocations),
            runs("free_runs", frees, &bursts.frees),
        ]),
        _ => {
            let why = survey.recorded.unsaid(needs::LOAD).unwrap_or_default();
            for (key, title) in [
                ("cpu_matrix", MATRIX),
                ("lifetimes", LIFETIMES),
                ("allocation_runs", allocations),
                ("free_runs", frees),
            ] {
                let mut table = Table::new(title, Vec::new());
                table.note(format!("This recording does not say. {why}"));
                sections.push(plain(key, table));
            }
        }
    }
    sections.extend([plain("kernel", moved(survey)), plain("activity", activity(survey))]);
    sections
}

/// The first table: the numbers to look at first.
fn summary(info: &TraceInfo, survey: &Survey) -> Table {
    let columns = vec![
        Column::label("what", "what"),
        Column::measure("value", "value"),
        Column::ratio("percent", "share").with_unit("%"),
    ];
    let mut title = format!("What is in {}", source::title(info));
    if !info.command.is_empty() {
        title += &format!(": `{}`", command_line(&info.command));
    }
    let mut table = Table::new(title, columns);
    let (orders, cpus, lifetimes) = (&survey.orders, &survey.cpus, survey.lifetimes.as_ref());
    let seconds = survey.time.map(|time| time.seconds());
    let unmatched = lifetimes.map(|lifetimes| lifetimes.unmatched_frees);
    let alive = lifetimes.map(|lifetimes| lifetimes.alive_at_end);
    let share = |part: Option<u64>, whole| part.zip(whole).and_then(|(part, whole)| percent(part, whole));
    // A row's share is in the same unit (blocks or pages) as the row's count.
    let rows: [(&str, Cell, Option<f64>); 12] = [
        ("events", survey.events.into(), None),
        ("seconds", Cell::real(seconds, 3), None),
        ("CPUs with events", (cpus.each.len() as u64).into(), None),
        ("blocks allocated", orders.allocated_blocks.into(), None),
        ("pages allocated", orders.allocated_pages.into(), None),
        ("blocks freed", orders.freed_blocks.into(), None),
        ("pages freed", orders.freed_pages.into(), None),
        ("unmatched frees", unmatched.into(), share(unmatched, orders.freed_blocks)),
        ("remote frees", cpus.remote_blocks.into(), cpus.remote_percent),
        ("still allocated at the end", alive.into(), share(alive, orders.allocated_blocks)),
        ("allocations that failed", orders.failed.into(), None),
        ("hits of the kernel's page sets", Cell::Absent, survey.kernel.hit_percent),
    ];
    for (what, value, share) in rows {
        table.push(Row::new([what.into(), value, Cell::real(share, 2)]));
    }
    for (count, what) in [
        (orders.impossible, "events with an impossible order or frame"),
        (survey.allocated_twice, "allocations of blocks in use (event of the free lost)"),
        (survey.not_followed, "allocations not followed, because the table of blocks was full"),
    ] {
        if count > 0 {
            table.note(format!("{count} {what}."));
        }
    }
    let counted = info.pgalloc_delta.filter(|pages| *pages > 0);
    if let (Some(pages), Some(allocated)) = (counted, orders.allocated_pages) {
        let seen = allocated + survey.kernel.bulk_pages_got.unwrap_or(0);
        let share = seen as f64 / pages as f64 * 100.0;
        table.note(format!(
            "The kernel's own counter shows {pages} allocated pages; the events show {share:.1} % of this number."
        ));
    }
    table
}

fn events(survey: &Survey) -> Table {
    let columns = vec![Column::label("event", "event"), Column::count("events", "events")];
    let mut table = Table::new("Events by kind", columns);
    for (kind, count) in survey.kinds.iter().filter(|(_, count)| *count > 0) {
        table.push(Row::new([kind.name().into(), (*count).into()]));
    }
    table
}

fn orders(survey: &Survey) -> Table {
    let orders = &survey.orders;
    let of_type = |order: &OrderBlocks, column: usize| order.allocated.map_or(0, |types| types[column]);
    let by_type = |column: usize| orders.by_order.iter().map(|order| of_type(order, column)).sum::<u64>();
    let used: Vec<_> =
        type_names().into_iter().enumerate().filter(|(column, _)| by_type(*column) > 0).collect();
    let mut columns = vec![Column::count("order", "order")];
    columns.extend(used.iter().map(|(_, name)| Column::count(&type_key(name), name)));
    columns.push(Column::count("allocated", "allocated"));
    columns.push(Column::count("freed", "freed"));
    let mut table = Table::new("Blocks allocated, by order and migratetype; blocks freed, by order", columns);
    for blocks in &orders.by_order {
        let counts = used.iter().map(|(column, _)| Cell::from(of_type(blocks, *column)));
        let sums = [blocks.allocated_blocks(), blocks.freed].map(Cell::from);
        table.push(Row::new(std::iter::once(Cell::from(blocks.order as u64)).chain(counts).chain(sums)));
    }
    if let Some(batched) = orders.freed_in_batches.filter(|blocks| *blocks > 0) {
        table.note(format!("{batched} of the freed blocks were freed in batches."));
    }
    table
}

/// The number of blocks for each pair of allocating and freeing CPU, for the drawing and for the formats that
/// programs read.
fn cpu_matrix(cpus: &Cpus, counts: &[Vec<u64>]) -> Matrix {
    let with_events = cpus.each.last().map_or(0, |last| last.cpu + 1);
    let widest = counts.iter().map(Vec::len).max().unwrap_or(0);
    let cpus = widest.max(counts.len()).max(with_events.min(pageset_replay::MATRIX_CPUS_MAX));
    let mut matrix = Matrix::new("allocating CPU", cpus, "freeing CPU", cpus, "blocks");
    for (from, row) in counts.iter().enumerate() {
        for (to, count) in row.iter().enumerate().filter(|(_, count)| **count > 0) {
            matrix.add(from, to, *count);
        }
    }
    matrix
}

fn matrix(cpus: &Cpus, counts: &[Vec<u64>]) -> Section {
    let matrix = cpu_matrix(cpus, counts);
    let mut table = matrix.to_table(MATRIX);
    let blocks = cpus.local_blocks.zip(cpus.remote_blocks);
    let pages = cpus.local_pages.zip(cpus.remote_pages);
    if let (Some(share), Some((local, remote)), Some((local_pages, remote_pages))) =
        (cpus.remote_percent, blocks, pages)
    {
        table.note(format!(
            "Freed by another CPU: {remote} of {} blocks ({share:.1} %), {remote_pages} of {} pages.",
            local + remote,
            local_pages + remote_pages
        ));
    }
    if let Some(beyond) = cpus.beyond_matrix.filter(|blocks| *blocks > 0) {
        table.note(format!(
            "Blocks that are not in the matrix, because a CPU's number is too large: {beyond}."
        ));
    }
    Section { key: "cpu_matrix", keys: 2, table, drawing: Some(matrix.to_string()) }
}

/// A section that shows a distribution: a table of ranges, and a drawing of the table.
fn distribution(key: &'static str, title: &str, counts: &Log2Counts) -> Section {
    let histogram: Histogram = counts.histogram();
    Section { key, keys: 2, table: histogram.to_table(title), drawing: Some(histogram.to_string()) }
}

fn lifetimes(lifetimes: &Lifetimes) -> Section {
    let mut section = distribution("lifetimes", LIFETIMES, &lifetimes.ns);
    if let Some((half, most)) = lifetimes.ns.percentile_at_most(50).zip(lifetimes.ns.percentile_at_most(90)) {
        section.table.note(format!(
            "Half of the blocks live for at most {}, 90 % for at most {}, and the longest for {}.",
            duration(half),
            duration(most),
            duration(lifetimes.ns.max)
        ));
    }
    section.drawing = Some(drawn_durations(&lifetimes.ns));
    section.table.note(format!(
        "Not included: {} blocks ({} pages) still allocated at the end, {} frees of unknown blocks.",
        lifetimes.alive_at_end, lifetimes.alive_pages_at_end, lifetimes.unmatched_frees
    ));
    if lifetimes.parts + lifetimes.freed_together > 0 {
        section.table.note(format!(
            "{} blocks were freed in parts, and {} frees released several blocks.",
            lifetimes.parts, lifetimes.freed_together
        ));
    }
    section
}

/// A histogram of nanoseconds in units that people can read.
fn drawn_durations(counts: &Log2Counts) -> String {
    const BAR_WIDTH: u64 = 40;
    let histogram = counts.histogram();
    let largest = histogram.ranges().map(|(_, _, count)| count).max().unwrap_or(0).max(1);
    let mut drawing = String::new();
    for (from, to, count) in histogram.ranges() {
        let bar = (u128::from(count) * u128::from(BAR_WIDTH)).div_ceil(u128::from(largest)) as usize;
        let range = format!("{} - {}", duration(from), duration(to));
        let _ = writeln!(drawing, "{range:>21}  {count:>11} |{:<1$}|", "#".repeat(bar), BAR_WIDTH as usize);
    }
    if drawing.is_empty() { "(no values)\n".to_owned() } else { drawing }
}

fn runs(key: &'static str, title: &str, runs: &pageset_replay::Runs) -> Section {
    let mut section = distribution(key, title, &runs.pages);
    if let Some(mean) = runs.pages.mean() {
        section.table.note(format!(
            "{} runs of {mean:.1} pages on average, the longest of {} pages on CPU {}.",
            runs.pages.total(),
            runs.pages.max,
            runs.longest_cpu
        ));
    }
    section
}

/// The table of pages that the recorded kernel moved between zones and page sets.
fn moved(survey: &Survey) -> Table {
    let columns = vec![
        Column::label("what", "what"),
        Column::count("times", "times"),
        Column::count("pages", "pages"),
        Column::ratio("pages_each", "pages each"),
        Column::count("largest", "largest"),
    ];
    let kernel = &survey.kernel;
    let mut table = Table::new("Pages that the kernel itself moved between zones and page sets", columns);
    for (what, runs, pages) in [
        ("refills of page sets", kernel.refills.as_ref(), kernel.refilled_pages),
        ("drains of page sets", kernel.drains.as_ref(), kernel.drained_pages),
    ] {
        table.push(Row::new([
            what.into(),
            runs.map(Log2Counts::total).into(),
            pages.into(),
            Cell::real(runs.and_then(Log2Counts::mean), 1),
            runs.map(|runs| runs.max).into(),
        ]));
    }
    for (what, times, pages) in [
        ("blocks past the page sets", kernel.direct_blocks, kernel.direct_pages),
        ("bulk allocations", kernel.bulk_calls, kernel.bulk_pages_got),
    ] {
        let cells = times.zip(pages);
        let cells = cells.map(|(times, pages)| [times.into(), pages.into(), Cell::quotient(pages, times, 1)]);
        let [times, pages, each] = cells.unwrap_or([Cell::Absent, Cell::Absent, Cell::Absent]);
        table.push(Row::new([what.into(), times, pages, each, Cell::Absent]));
    }
    if let Some(why) = survey.recorded.unsaid(needs::VISITS) {
        table.note(format!("This recording does not have all of these events. {why}"));
    }
    table
}

/// A table of the recorded kernel's other work on its memory.
fn activity(survey: &Survey) -> Table {
    let columns = vec![
        Column::label("what", "what"),
        Column::count("times", "times"),
        Column::measure("total_ms", "total").with_unit("ms"),
        Column::measure("longest_us", "longest").with_unit("us"),
    ];
    let kernel = &survey.kernel;
    let mut table = Table::new("Other work of the kernel", columns);
    for (what, waits) in [
        ("waits for other locks", kernel.other_wait_ns.as_ref()),
        ("waits for spinning locks", kernel.spin_wait_ns.as_ref()),
    ] {
        table.push(Row::new([
            what.into(),
            waits.map(Log2Counts::total).into(),
            waits.map(|waits| Cell::real(waits.sum as f64 / 1e6, 3)).into(),
            waits.map(|waits| Cell::real(waits.max as f64 / 1e3, 1)).into(),
        ]));
    }
    let locks = &kernel.zone_locks;
    let zone_waits = locks.waits.as_ref().map(|found| (found.waits, found.wait_ns));
    let zone_waits = [("of these waits, for zone locks".to_owned(), zone_waits)];
    let by_caller = locks.by_caller.iter().map(|CallerWaits { caller, waits, wait_ns }| {
        (format!("... by {}, as call chains say", caller.name()), Some((*waits, *wait_ns)))
    });
    for (what, found) in zone_waits.into_iter().chain(by_caller) {
        let total = found.map(|(_, wait_ns)| Cell::real(wait_ns as f64 / 1e6, 3));
        let waits = found.map(|(waits, _)| waits);
        table.push(Row::new([what.into(), waits.into(), total.into(), Cell::Absent]));
    }
    for (what, times) in [
        ("ticks (vmstat_update)", kernel.vmstat_ticks),
        ("LRU flushes on request", kernel.lru_drains),
        ("blocks of another migratetype used", kernel.extfrag),
        ("pageblocks that changed migratetype", kernel.extfrag_ownership_changes),
        ("kswapd woken", kernel.kswapd_wakes),
        ("kswapd asleep", kernel.kswapd_sleeps),
        ("direct reclaims", kernel.direct_reclaims),
        ("page faults from user mode", kernel.page_faults),
        ("forks", kernel.forks),
    ] {
        table.push(Row::new([what.into(), times.into(), Cell::Absent, Cell::Absent]));
    }
    if table.rows().iter().any(|row| row.cells[1] == Cell::Absent) {
        table.note("If `times` is `-`, events of this kind were not recorded, or the recording does not show whether they were recorded.");
    }
    if let Some(unpaired) = kernel.unpaired_waits.filter(|waits| *waits > 0) {
        table.note(format!("Waits without a recorded beginning, or without a recorded end: {unpaired}."));
    }
    let busy = |bursts: &&Bursts| bursts.peak_per_ms > 0;
    if let Some(bursts) = survey.bursts.as_ref().filter(busy) {
        let since = survey.time.map_or(0, |time| bursts.peak_at_ns.saturating_sub(time.first_ns));
        table.note(format!(
            "Busiest millisecond: {} allocations and frees, {} after the first event.",
            bursts.peak_per_ms,
            duration(since)
        ));
    }
    table
}

fn zones(survey: &Survey) -> Table {
    let columns = vec![
        Column::label("zone", "zone"),
        Column::label("when", "when"),
        Column::count("managed", "managed"),
        Column::count("free", "free"),
        Column::count("min", "min"),
        Column::count("low", "low"),
        Column::count("high", "high"),
        Column::count("pcp_pages", "in page sets"),
        Column::count("pcp_pages_peak", "sampled peak"),
    ];
    let mut table = Table::new("Zones, in pages", columns);
    for zone in &survey.zones {
        let name = format!("{} {}", zone.node.0, zone.kind.name());
        for (when, state) in [("before", &zone.before), ("after", &zone.after)] {
            let Some(state) = state else { continue };
            let counts = [state.managed, state.free, state.min, state.low, state.high, state.pcp_pages];
            let peak = if when == "after" { zone.pcp_pages_peak.into() } else { Cell::Absent };
            let labels = [name.as_str(), when].map(Cell::from);
            table.push(Row::new(labels.into_iter().chain(counts.map(Cell::Count)).chain([peak])));
        }
    }
    table
}

fn pagesets(survey: &Survey) -> Table {
    let columns = vec![
        Column::label("zone", "zone"),
        Column::label("cpu", "CPU"),
        Column::count("batch", "batch"),
        Column::count("count_before", "pages before"),
        Column::count("count_after", "pages after"),
        Column::count("high_before", "high before"),
        Column::count("high_after", "high after"),
    ];
    let mut table = Table::new("Page sets, in pages", columns);
    let mut hidden = 0;
    for zone in &survey.zones {
        let name = format!("{} {}", zone.node.0, zone.kind.name());
        let states = [&zone.before, &zone.after].map(Option::as_ref);
        let Some(any) = states[0].or(states[1]) else { continue };
        hidden += any.pagesets.len().saturating_sub(CPUS_SHOWN);
        for pageset in any.pagesets.iter().take(CPUS_SHOWN) {
            let at = |state: Option<&ZoneState>| {
                state.and_then(|state| state.pagesets.iter().find(|other| other.cpu == pageset.cpu).copied())
            };
            let [before, after] = states.map(at);
            table.push(Row::new([
                name.as_str().into(),
                pageset.cpu.to_string().into(),
                u64::from(pageset.batch).into(),
                before.map(|state| u64::from(state.count)).into(),
                after.map(|state| u64::from(state.count)).into(),
                before.map(|state| u64::from(state.high)).into(),
                after.map(|state| u64::from(state.high)).into(),
            ]));
        }
    }
    if hidden > 0 {
        table.note(format!("{hidden} more page sets are in the JSON format."));
    }
    table
}

/// Returns a time as text, in the unit that suits its length.
pub(crate) fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_that_fits() {
        let shown = [999, 1_500, 2_000_000, 3_200_000_000].map(duration);
        assert_eq!(shown, ["999 ns", "1.5 us", "2.0 ms", "3.2 s"]);
    }
}
