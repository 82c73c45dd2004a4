//! A reproduced study as JSON, and as one flat table.

use pageset_report::comparison::{Agreement, Comparison, Misses};
use pageset_report::{Cell, Column, Kind, Provenance, Row, Table};
use serde::Serialize;

use super::study::Findings;

/// A quantity whose order agrees worse than this is named among what did not reproduce.
const SPEARMAN_MIN: f64 = 0.9;

/// The whole result.
#[derive(Debug, Serialize)]
pub struct Reproduction<'a> {
    /// Name of the study.
    pub study: &'static str,
    /// Published tables with our values.
    pub tables: &'a [Comparison],
    /// Tables of our own.
    pub more: &'a [Table],
    /// Over all tables: pairs whose direction was compared, and those that agree.
    pub directions: u64,
    /// How many of these agree.
    pub directions_agreed: u64,
    /// Their share.
    pub direction_agreement: Option<f64>,
    /// How the others differ.
    pub misses: Misses,
    /// What the reader must know.
    pub notes: &'a [String],
    /// What differs, found from the tables.
    pub differences: Vec<String>,
    /// Why, as far as we can tell.
    pub explanations: &'a [String],
    /// Where the values come from.
    pub provenance: Provenance,
}

impl<'a> Reproduction<'a> {
    /// Compares what was found with what was published.
    pub fn new(study: &'static str, findings: &'a Findings, provenance: Provenance) -> Self {
        let agreements: Vec<Agreement> = findings.tables.iter().map(Comparison::agreement).collect();
        let directions = agreements.iter().map(|agreement| agreement.directions).sum();
        let agreed = agreements.iter().map(|agreement| agreement.directions_agreed).sum();
        let total = Agreement { directions, directions_agreed: agreed, ..Agreement::default() };
        Self {
            study,
            tables: &findings.tables,
            more: &findings.more,
            directions,
            directions_agreed: agreed,
            direction_agreement: total.direction_agreement(),
            misses: findings.tables.iter().map(Comparison::misses).sum(),
            notes: &findings.notes,
            differences: findings.tables.iter().flat_map(differences).collect(),
            explanations: &findings.explanations,
            provenance,
        }
    }

    /// All pairs of all tables, one for each row; then all numbers of our own tables, which have nothing published.
    pub fn flat_table(&self) -> Table {
        let columns = vec![
            Column::label("table", "table"),
            Column::label("row", "row"),
            Column::label("column", "column"),
            Column::measure("published", "published"),
            Column::measure("ours", "ours"),
            Column::label("origin", "origin"),
        ];
        let mut table = Table::new(self.study, columns);
        for comparison in self.tables {
            for (index, quantity) in comparison.quantities().iter().enumerate() {
                for (row, pair) in comparison.row_names().zip(comparison.pairs(index)) {
                    let cell = |value: Option<f64>| {
                        value.map_or(Cell::Absent, |value| Cell::real(value, quantity.decimals))
                    };
                    table.push(Row::new([
                        comparison.id().into(),
                        row.into(),
                        quantity.key.as_str().into(),
                        cell(pair.published),
                        cell(pair.ours),
                        pair.origin.name().into(),
                    ]));
                }
            }
        }
        for own in self.more {
            own.rows().iter().for_each(|row| push_own(&mut table, own, row));
        }
        table.with_provenance(self.provenance.clone())
    }
}

/// Adds the numbers of one row of a table of our own. The row's name is its labels and, where these do not tell rows
/// apart, its first number.
fn push_own(table: &mut Table, own: &Table, row: &Row) {
    let labels = |row: &Row| {
        let cells = own.columns().iter().zip(&row.cells);
        let text =
            cells.filter_map(|(_, cell)| if let Cell::Text(text) = cell { Some(text.clone()) } else { None });
        text.collect::<Vec<_>>().join(" ")
    };
    let numbers = || own.columns().iter().zip(&row.cells).filter(|(column, _)| column.kind != Kind::Label);
    let mut name = labels(row);
    if own.rows().iter().filter(|other| labels(other) == name).count() > 1
        && let Some((_, Cell::Count(first))) = numbers().next()
    {
        name += &format!(" {first}");
    }
    for (column, cell) in numbers().filter(|(_, cell)| **cell != Cell::Absent) {
        let (title, key) = (own.title(), column.key.as_str());
        table.push(Row::new([
            title.into(),
            name.as_str().into(),
            key.into(),
            Cell::Absent,
            cell.clone(),
            "computed".into(),
        ]));
    }
}

/// One sentence for each quantity of a table that does not agree.
fn differences(comparison: &Comparison) -> Vec<String> {
    let mut found = Vec::new();
    for (index, quantity) in comparison.quantities().iter().enumerate() {
        let agreement = comparison.agreement_of(index);
        let mut what = Vec::new();
        if agreement.directions_agreed < agreement.directions {
            let rows = comparison.row_names().enumerate().filter_map(|(row, name)| {
                let change = comparison.change(row, index)?;
                (!change.agrees()).then_some(name)
            });
            what.push(format!("other direction in {}", rows.collect::<Vec<_>>().join(", ")));
        }
        let wanted = agreement.spearman_ceiling.map_or(SPEARMAN_MIN, |ceiling| ceiling.min(SPEARMAN_MIN));
        if let Some(spearman) = agreement.spearman.filter(|spearman| *spearman < wanted - 1e-9) {
            what.push(format!("other order (Spearman {spearman:.2})"));
        }
        if agreement.missing > 0 {
            what.push(format!("{} values that we do not have", agreement.missing));
        }
        if !what.is_empty() {
            found.push(format!("{}, {}: {}.", comparison.id(), quantity.heading, what.join("; ")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_our_own_tables_are_in_the_flat_one() {
        let columns = vec![
            Column::label("kernel", "kernel"),
            Column::count("threads", "Thr"),
            Column::measure("ns", "ns"),
        ];
        let mut own = Table::new("own", columns);
        for (kernel, threads) in [("old", 1_u64), ("old", 2), ("new", 1)] {
            own.push(Row::new([kernel.into(), threads.into(), Cell::real(0.5, 1)]));
        }
        let findings = Findings { more: vec![own], ..Findings::default() };
        let flat = Reproduction::new("study", &findings, Provenance::default()).flat_table();
        let rows: Vec<_> =
            flat.rows().iter().map(|row| (row.cells[1].clone(), row.cells[4].clone())).collect();
        let row = |name: &str, ours: Cell| (Cell::from(name), ours);
        assert_eq!(rows[..2], [row("old 1", 1_u64.into()), row("old 1", Cell::real(0.5, 1))]);
        assert_eq!(rows[2..4], [row("old 2", 2_u64.into()), row("old 2", Cell::real(0.5, 1))]);
        assert_eq!(rows[4..], [row("new", 1_u64.into()), row("new", Cell::real(0.5, 1))]);
    }
}
