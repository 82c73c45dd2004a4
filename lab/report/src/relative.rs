//! Turns a table into a table relative to its first row.
//!
//! Authors of patches to the page allocator post tables of this kind: the first row is the unpatched kernel,
//! and each patch is compared with the first row.

use crate::{Cell, Kind, Row, Table};

/// A function from a value and the first row's value to the relative value.
type Relation = fn(f64, f64) -> f64;

/// Turns the columns named by `keys` into percentages of the first row. The first row itself becomes 100.
///
/// A value becomes absent if the value or the first row's value is not a number, or if the first row's value
/// is 0. A note reports a first row's value of 0. Unknown keys and label columns are ignored.
#[must_use]
pub fn relative_to_first(table: &Table, keys: &[&str]) -> Table {
    relate(table, keys, "First row = 100", |value, base| value / base * 100.0)
}

/// Turns the columns named by `keys` into changes from the first row, in percent. The first row itself
/// becomes 0.
///
/// Values become absent, and keys are ignored, as in [`relative_to_first`].
#[must_use]
pub fn change_from_first(table: &Table, keys: &[&str]) -> Table {
    relate(table, keys, "Change from the first row in percent", |value, base| (value - base) / base * 100.0)
}

fn relate(table: &Table, keys: &[&str], unit_note: &str, relation: Relation) -> Table {
    let mut result = table.clone();
    let mut related = Vec::new();
    let mut undefined = Vec::new();
    let (columns, rows) = result.parts_mut();
    for (index, column) in columns.iter_mut().enumerate() {
        if column.kind == Kind::Label || !keys.contains(&column.key.as_str()) {
            continue;
        }
        if relate_column(rows, index, relation) {
            undefined.push(column.heading.clone());
        }
        related.push(column.heading.clone());
        column.kind = Kind::Ratio;
        "%".clone_into(&mut column.unit);
    }
    if !related.is_empty() {
        result.note(format!("{unit_note}: {}.", related.join(", ")));
    }
    if !undefined.is_empty() {
        result.note(format!("No relative value where the first row is 0: {}.", undefined.join(", ")));
    }
    result
}

/// Replaces one column. Returns true if the first row's value is 0, so that the column has no relative
/// values.
fn relate_column(rows: &mut [Row], index: usize, relation: Relation) -> bool {
    let base = rows.first().and_then(|row| row.cells[index].number());
    for row in rows {
        let value = row.cells[index].number();
        row.cells[index] = match (value, base) {
            (Some(value), Some(base)) if base != 0.0 => Cell::real(relation(value, base), 1),
            _ => Cell::Absent,
        };
    }
    base == Some(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;

    fn table(values: &[Cell]) -> Table {
        let mut table =
            Table::new("t", vec![Column::label("policy", "policy"), Column::count("pages", "pages")]);
        for value in values {
            table.push(Row::new(["p".into(), value.clone()]));
        }
        table
    }

    #[track_caller]
    fn check(table: &Table, expected: &[Option<f64>]) {
        let values: Vec<_> = table.rows().iter().map(|row| row.cells[1].number()).collect();
        assert_eq!(values, expected);
    }

    #[test]
    fn the_first_row_is_100() {
        let table = table(&[8u64.into(), 6u64.into(), Cell::Absent, 12u64.into()]);
        let relative = relative_to_first(&table, &["pages", "policy", "nothing"]);
        check(&relative, &[Some(100.0), Some(75.0), None, Some(150.0)]);
        assert_eq!(relative.rows()[1].cells[0], "p".into(), "labels stay as they are");
        assert_eq!(relative.notes(), ["First row = 100: pages."]);
    }

    #[test]
    fn changes_have_a_sign() {
        check(&change_from_first(&table(&[8u64.into(), 6u64.into()]), &["pages"]), &[Some(0.0), Some(-25.0)]);
    }

    #[test]
    fn a_first_row_of_0_has_no_relatives_and_the_note_says_so() {
        let relative = relative_to_first(&table(&[0u64.into(), 6u64.into()]), &["pages"]);
        check(&relative, &[None, None]);
        assert_eq!(relative.notes()[1], "No relative value where the first row is 0: pages.");
    }

    #[test]
    fn an_empty_table_stays_empty() {
        check(&relative_to_first(&table(&[]), &["pages"]), &[]);
    }
}
