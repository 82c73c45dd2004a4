//! Turns a recording of counts, which has no events, into tables.

use pageset_replay::who::percent;
use pageset_report::{Cell, Column, Row, Table, command_line};
use pageset_trace::{Counts, HitEstimate, TraceInfo};

use super::sections::{Section, plain};
use crate::source;

pub(super) fn sections(info: &TraceInfo, counts: &Counts) -> Vec<Section> {
    vec![plain("counts", hits(info, counts)), plain("zone_visits", visits(info, counts))]
}

fn columns() -> Vec<Column> {
    vec![
        Column::label("what", "what"),
        Column::count("hits", "hits"),
        Column::count("hits_low", "from"),
        Column::count("hits_high", "to"),
        Column::ratio("hits_per_s", "a second"),
        Column::ratio("counted_percent", "counted").with_unit("% of time"),
    ]
}

fn row(what: &str, hits: Option<HitEstimate>, counted_ns: Option<u64>, counts: &Counts) -> Row {
    let seconds = counts.elapsed_ns as f64 / 1e9;
    let of = |number: fn(HitEstimate) -> u64| hits.map_or(Cell::Absent, |hits| number(hits).into());
    let share = counted_ns.and_then(|ns| percent(ns.min(counts.elapsed_ns), counts.elapsed_ns));
    Row::new([
        what.into(),
        of(|hits| hits.hits),
        of(|hits| hits.low),
        of(|hits| hits.high),
        hits.map_or(Cell::Absent, |hits| Cell::real(hits.hits as f64 / seconds, 0)),
        share.map_or(Cell::Absent, |share| Cell::real(share, 1)),
    ])
}

fn hits(info: &TraceInfo, counts: &Counts) -> Table {
    let mut title = format!("Counts of {:.1} s in {}", counts.elapsed_ns as f64 / 1e9, source::title(info));
    if !info.command.is_empty() {
        title += &format!(": `{}`", command_line(&info.command));
    }
    let mut table = Table::new(title, columns());
    for tracepoint in &counts.tracepoints {
        let name = tracepoint.name.rsplit('/').next().unwrap_or(&tracepoint.name);
        table.push(row(name, tracepoint.hits, Some(tracepoint.counted_ns), counts));
    }
    if counts.tracepoints.iter().filter_map(|tracepoint| tracepoint.hits).any(|hits| !hits.is_exact()) {
        table.note(
            "Frequent events were counted only in slices of time at random places, so that counting slows the \
             load little. Such a number is an estimate, and `from` and `to` are its 95 % interval. Numbers \
             that were counted all the time are exact.",
        );
    }
    if counts.tracepoints.iter().any(|tracepoint| tracepoint.hits.is_none()) {
        table.note(
            "`-` stands for an unknown number, whose counter was switched on too rarely. Count for longer.",
        );
    }
    table.note("contention_begin counts only waits for locks that spin.");
    table
}

fn visits(info: &TraceInfo, counts: &Counts) -> Table {
    let mut table = Table::new("Zones", columns());
    let throughout = Some(counts.elapsed_ns);
    table.push(row("visits, blocks past sets", counts.zone_visits(), Some(counts.visits_counted_ns), counts));
    table.push(row("blocks moved", counts.moved_blocks(), None, counts));
    let waits = counts.zone_waits;
    let waited = waits.map(|waits| HitEstimate {
        low: waits.waits,
        hits: waits.waits,
        high: waits.waits.saturating_add(waits.unknown_waits),
    });
    table.push(row("waits for zone locks", waited, waits.and(throughout), counts));
    let ns = waits.map(|waits| HitEstimate {
        low: waits.wait_ns,
        hits: waits.wait_ns,
        high: waits.wait_ns.saturating_add(waits.unknown_wait_ns),
    });
    table.push(row("ns of these waits", ns, waits.and(throughout), counts));
    // The kernel counts allocated and freed pages all the time, for /proc/vmstat.
    table.push(row("pages allocated", info.pgalloc_delta.map(HitEstimate::exact), throughout, counts));
    table.push(row("pages freed", info.pgfree_delta.map(HitEstimate::exact), throughout, counts));
    table.note(
        "Counts do not distinguish a visit (a refill or a drain of a page set) from a block that went past the \
         page set, so the first row has both. Visits and these blocks are counted in slices of time, in which each \
         hit is recorded with its time.",
    );
    table
}
