//! The results as the tables of the README.

use std::fmt::Write as _;

use crate::document::{Document, Row, Value};
use crate::goals::{Judged, judged};

/// Machine and commit, one line for each row, and which goals are reached.
pub(crate) fn text(document: &Document) -> String {
    let Document { machine, commit, rounds, .. } = document;
    let mut text = format!(
        "{}; {}; {}; commit {commit}; load average before {}; rounds {rounds}.\n\n",
        machine.line(),
        machine.cc,
        machine.rustc,
        machine.load
    );
    text += "| row | threads | unit | pageset (min - max) | floor | pageset-core | best peer | second | best / pageset |\n";
    text += "|---|---:|---|---:|---:|---:|---:|---:|---:|\n";
    document.rows.iter().for_each(|row| text += &line(row));
    text += "\n| goal | threads | at most | measured | |\n|---|---:|---:|---:|---|\n";
    for Judged { row, threads, goal, value, is_reached } in judged(document) {
        let verdict = if is_reached { "reached" } else { "not reached" };
        let _ = writeln!(text, "| {row} | {threads} | {goal} | {} | {verdict} |", digits(value));
    }
    text
}

/// One row of the table.
fn line(row: &Row) -> String {
    let median = |name: &str| {
        let value = row.results.iter().find(|value| value.allocator == name);
        value.map_or("-".to_owned(), |value| digits(value.median))
    };
    let mut peers = row.peers().map(|value| format!("{} {}", digits(value.median), value.allocator));
    let mut next = || peers.next().unwrap_or("-".to_owned());
    let ours = row.ours().map_or("-".to_owned(), |Value { median, min, max, .. }| {
        format!("{} ({} - {})", digits(*median), digits(*min), digits(*max))
    });
    let ratio = row.pageset_vs_best.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    let (best, second) = (next(), next());
    let (floor, core) = (median("floor"), median("pageset-core"));
    let Row { row, threads, unit, .. } = row;
    format!("| {row} | {threads} | {unit} | {ours} | {floor} | {core} | {best} | {second} | {ratio} |\n")
}

/// Formats a value with three significant digits.
fn digits(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    #[test]
    fn a_row_has_ours_the_two_best_and_the_ratio() {
        let row = crate::document::example(&[
            ("pageset", &[2.0, 2.0, 9.0]),
            ("floor", &[0.33]),
            ("mmap", &[1234.5]),
            ("snmalloc", &[4.0, 5.0, 6.0]),
        ]);
        let expected =
            "| pair-0 | 1 | ns/pair | 2.00 (2.00 - 9.00) | 0.33 | - | 5.00 snmalloc | 1234 mmap | 2.50 |\n";
        assert_eq!(line(&row), expected);
        let document = Document::of_rows(vec![row]);
        let text = text(&document);
        assert!(
            text.contains(expected) && text.ends_with("| pair-0 | 1 | 2.5 ns/pair | 2.00 | reached |\n"),
            "{text}"
        );
    }
}
