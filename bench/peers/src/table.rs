//! The results as plain text: pageset against the best peer, then every row in full.

use pageset_report::{Cell, Column, Format, Provenance, Table};

use crate::document::{Absent, Document, Row, Value};

/// All tables.
pub(crate) fn text(document: &Document) -> String {
    let mut text = String::new();
    if document.rows.iter().any(|row| row.ours().is_some()) {
        text += &Format::Table.exporter().to_string(&summary(document));
        text.push('\n');
    }
    for row in &document.rows {
        text += &Format::Table.exporter().to_string(&detail(row));
        text.push('\n');
    }
    text + "Machine: " + &document.machine.line() + ".\n"
}

/// One line for each row.
fn summary(document: &Document) -> Table {
    let columns = vec![
        Column::label("row", "row"),
        Column::count("threads", "threads"),
        Column::label("unit", "unit"),
        Column::measure("pageset", "pageset"),
        Column::measure("best_median", "best peer"),
        Column::label("best_peer", "which"),
        Column::ratio("pageset_vs_best", "peer / pageset"),
        Column::label("spread", "pageset min - max"),
    ];
    let mut table = Table::new("pageset and the best peer of each row", columns);
    for row in &document.rows {
        let (ours, best) = (row.ours(), row.best());
        table.push(pageset_report::Row::new([
            row.row.into(),
            (row.threads as u64).into(),
            row.unit.into(),
            ours.map_or(Cell::Absent, |value| number(value.median)),
            best.map_or(Cell::Absent, |value| number(value.median)),
            row.best_peer.into(),
            row.pageset_vs_best.map_or(Cell::Absent, |ratio| Cell::real(ratio, 2)),
            ours.map_or(Cell::Absent, |value| spread(value).into()),
        ]));
    }
    table.note(
        "Medians; less is better everywhere. Above 1 in the last column pageset is better than every peer.",
    );
    table.with_provenance(Provenance {
        version: concat!("pageset-peers ", env!("CARGO_PKG_VERSION")).to_owned(),
        commit: Some(document.commit.to_owned()),
        machine: document.machine.line(),
        ..Provenance::default()
    })
}

/// All allocators in one row.
fn detail(row: &Row) -> Table {
    let threads = if row.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", row.threads) };
    let columns = vec![
        Column::label("allocator", "allocator"),
        Column::measure("median", "median"),
        Column::measure("min", "min"),
        Column::measure("max", "max"),
        Column::ratio("relative", "of the best"),
    ];
    let mut table = Table::new(format!("{}, {threads}, {}", row.row, row.unit), columns);
    let best = row.results.iter().find(|value| !value.is_floor()).map(|value| value.median);
    for value in &row.results {
        let relative = best.map_or(Cell::Absent, |best| Cell::real(value.median / best, 2));
        let numbers = [number(value.median), number(value.min), number(value.max), relative];
        table.push(pageset_report::Row::new([Cell::from(value.allocator)].into_iter().chain(numbers)));
    }
    let mut told: Vec<&str> = Vec::new();
    for Absent { reason, .. } in &row.absent {
        if !told.contains(&reason.as_str()) {
            let same = row.absent.iter().filter(|absent| absent.reason == *reason);
            let names: Vec<_> = same.map(|absent| absent.allocator).collect();
            table.note(format!("{}: {reason}.", names.join(", ")));
            told.push(reason);
        }
    }
    table
}

/// Formats a value with three significant digits.
fn number(value: f64) -> Cell {
    let digits = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    Cell::real(value, digits)
}

fn spread(value: &Value) -> String {
    let one = |value: f64| if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    format!("{} - {}", one(value.min), one(value.max))
}
