//! The results, as tables and sentences.

use pageset_report::{Cell, Column, Row, Spread, Table};
use pageset_sim::LineTraffic;

use super::axes::{AXES, Axis, Figure, Match, shared_percent, spread};
use super::grid::{BASE, Found, LINUX, OWNED_BLOCKS, Place};
use crate::simulate::RunResult;

/// For each goal, the number of places that meet it.
pub(super) fn verdict(found: &[Found]) -> Table {
    let mut columns = vec![Column::label("axis", "axis"), Column::label("goal", "goal, beside Linux's")];
    columns.extend(LINUX.map(|policy| Column::label(&format!("met_{policy}"), policy)));
    columns.push(Column::ratio("mean", &format!("mean, of {BASE}")));
    columns.push(Column::ratio("worst", "worst"));
    columns.push(Column::label("worst_at", "at"));
    let mut table = Table::new("owned-blocks: goals met, in how many places", columns);
    for axis in AXES {
        let matches = |linux| matches(found, &axis, OWNED_BLOCKS, linux);
        let met = LINUX.map(|linux| {
            let matches = matches(linux);
            let met = matches.iter().filter(|(_, one)| one.is_met).count();
            Cell::from(format!("{met} of {}", matches.len()))
        });
        let of_base = matches(BASE);
        let worst = of_base.iter().max_by(|(_, one), (_, other)| {
            let order = one.ratio.total_cmp(&other.ratio);
            if axis.is_better_above() { order.reverse() } else { order }
        });
        let (ratio, at) = worst.map_or((Cell::Absent, String::new()), |(place, one)| {
            (Cell::real(one.ratio, 3), format!("{} {}", place.workload, place.cpus))
        });
        let names = [Cell::from(axis.name), axis.goal.into()];
        table.push(Row::new(names.into_iter().chain(met).chain([mean(&of_base), ratio, at.into()])));
    }
    table
}

fn matches<'f>(
    found: impl IntoIterator<Item = &'f Found>,
    axis: &Axis,
    ours: &str,
    linux: &str,
) -> Vec<(Place, Match)> {
    found.into_iter().filter_map(|found| Some((found.place, axis.compare(found, ours, linux)?))).collect()
}

/// The geometric mean of the ratios.
fn mean(matches: &[(Place, Match)]) -> Cell {
    if matches.is_empty() {
        return Cell::Absent;
    }
    let logarithms: f64 = matches.iter().map(|(_, one)| one.ratio.ln()).sum();
    Cell::real((logarithms / matches.len() as f64).exp(), 3)
}

/// Makes a table of all figures for each machine, with one row for each workload and allocator.
pub(super) fn by_size(found: &[Found]) -> Vec<Table> {
    let of_same_size = found.chunk_by(|one, other| one.place.machine == other.place.machine);
    of_same_size.map(|found| table_of_size(found[0].place, found)).collect()
}

fn table_of_size(place: Place, found: &[Found]) -> Table {
    let mut columns = vec![
        Column::label("workload", "workload"),
        Column::label("allocator", "allocator"),
        Column::ratio("score_percent", "score").with_unit("%"),
        Column::ratio("spread_percent", "+/-").with_unit("%"),
    ];
    columns.extend(figures().map(|(column, ..)| column));
    let title = format!("{} CPUs ({}); score: {BASE} = 100", place.cpus, place.machine);
    let mut table = Table::new(title, columns);
    for found in found {
        let base = spread(found.of(BASE), SCORE);
        for policy in found.policies() {
            table.push(row(found.place, policy, found.of(policy), base.as_ref()));
        }
    }
    table
}

const SCORE: Figure = |run| run.score_per_s;

/// The columns of means, each with its number of digits.
fn figures() -> [(Column, u8, Figure); 14] {
    [
        (Column::ratio("visits", "visits"), 0, |run| run.shared.visits as f64),
        (Column::ratio("passed", "passed"), 0, |run| run.shared.line_transfers as f64),
        (Column::ratio("lines", "lines"), 0, |run| run.shared.lines() as f64),
        (Column::ratio("shared_percent", "shared").with_unit("%"), 2, shared_percent),
        (Column::ratio("held_mean", "held, mean"), 0, |run| run.shared.held_mean),
        (Column::ratio("held_after_two_ticks", "two ticks"), 0, |run| run.shared.held_after_two_ticks as f64),
        (Column::ratio("pcp_pages_idle", "30 ticks"), 0, |run| run.pcp_pages_idle as f64),
        (Column::ratio("whole_at_end", "whole, end"), 0, |run| run.shared.whole_at_end as f64),
        (Column::ratio("apart_at_end", "apart, end"), 0, |run| run.shared.apart_at_end as f64),
        (Column::ratio("whole_when_gone", "whole, gone"), 0, |run| run.shared.whole_when_gone as f64),
        (Column::ratio("fallbacks", "fallbacks"), 0, |run| run.shared.fallbacks as f64),
        (Column::ratio("alloc_mean_ns", "mean").with_unit("ns"), 0, |run| run.alloc_mean_ns),
        (Column::ratio("alloc_p999_ns", "p99.9").with_unit("ns"), 0, |run| run.alloc_p999_ns),
        (Column::ratio("alloc_max_ns", "longest").with_unit("ns"), 0, |run| run.alloc_max_ns),
    ]
}

fn row(place: Place, policy: &str, results: &[RunResult], base: Option<&Spread>) -> Row {
    let mean = |(_, digits, figure): (Column, u8, Figure)| {
        Cell::real(spread(results, figure).map(|spread| spread.mean), digits)
    };
    let scores = spread(results, SCORE);
    let score = scores.as_ref().zip(base).map(|(scores, base)| 100.0 * scores.mean / base.mean);
    let percent = |value: Option<f64>| Cell::real(value, 1);
    let deviation = scores.and_then(|scores| scores.stddev_percent());
    let names = [place.workload.into(), policy.into(), percent(score), percent(deviation)];
    Row::new(names.into_iter().chain(figures().map(mean)))
}

/// Makes the table of cache lines that pass from CPU to CPU, by the allocator's table that they belong to.
pub(super) fn lines(found: &[Found]) -> Table {
    let mut columns = vec![Column::label("workload", "lines, of 1000 pages"), Column::count("cpus", "CPUs")];
    columns.extend(LineTraffic::TABLES.map(|table| Column::ratio(table, table)));
    let mut table =
        Table::new("owned-blocks: lines that pass from CPU to CPU, for 1000 pages allocated", columns);
    for found in found {
        let results = found.of(OWNED_BLOCKS);
        let pages: u64 = results.iter().map(|run| run.allocated_pages).sum();
        let of = |table: &str| {
            let passes = results.iter().filter_map(|run| run.shared.line_passes.get(table)).sum::<u64>();
            if pages == 0 { Cell::Absent } else { Cell::real(1000.0 * passes as f64 / pages as f64, 2) }
        };
        let place = [Cell::from(found.place.workload), u64::from(found.place.cpus).into()];
        table.push(Row::new(place.into_iter().chain(LineTraffic::TABLES.map(of))));
    }
    table
}

/// Returns a sentence for each goal that is missed beside the base, with the places.
pub(super) fn losses(found: &[Found]) -> Vec<String> {
    let of_axis = |axis: &Axis| {
        let matches = matches(found, axis, OWNED_BLOCKS, BASE);
        let missed = matches.iter().filter(|(_, one)| !one.is_met);
        let places: Vec<_> = missed
            .map(|(place, one)| format!("{} on {} CPUs ({:.2})", place.workload, place.cpus, one.ratio))
            .collect();
        (!places.is_empty()).then(|| {
            format!("{}, goal \"{}\" beside {BASE}, missed by {}.", axis.name, axis.goal, places.join(", "))
        })
    };
    AXES.iter().filter_map(of_axis).collect()
}
