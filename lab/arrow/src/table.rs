//! Turns a printed table into columns.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use pageset_report::{Cell, Column, Kind, Provenance, Table};

/// Converts a table's rows. The name of a column is its key in CSV. Metadata has the heading and unit of each
/// column, and the table's title, notes and provenance. Names become text, counts `UInt64`, and other numbers
/// `Float64`. Absent values become null. The call takes O(cells).
///
/// # Errors
///
/// An error of Arrow. No such error is known to occur.
pub fn batch(table: &Table) -> Result<RecordBatch> {
    let (fields, columns): (Vec<_>, Vec<_>) =
        table.columns().iter().enumerate().map(|(index, column)| filled(table, index, column)).unzip();
    let schema = Schema::new(fields).with_metadata(metadata(table));
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

fn filled(table: &Table, index: usize, column: &Column) -> (Field, ArrayRef) {
    let cells = || table.rows().iter().map(move |row| &row.cells[index]);
    let array: ArrayRef = match column_type(column.kind, cells()) {
        DataType::UInt64 => Arc::new(cells().map(count).collect::<UInt64Array>()),
        DataType::Float64 => Arc::new(cells().map(Cell::number).collect::<Float64Array>()),
        _ => Arc::new(cells().map(text).collect::<StringArray>()),
    };
    let mut said = HashMap::from([("heading".to_owned(), column.heading.clone())]);
    if !column.unit.is_empty() {
        said.insert("unit".to_owned(), column.unit.clone());
    }
    (Field::new(&column.key, array.data_type().clone(), true).with_metadata(said), array)
}

/// Returns the type of the column's kind. If a value does not fit this type, returns a wider type, so that no
/// value is lost.
fn column_type<'a>(kind: Kind, mut cells: impl Iterator<Item = &'a Cell> + Clone) -> DataType {
    let has_text = kind == Kind::Label || cells.clone().any(|cell| matches!(cell, Cell::Text(_)));
    match kind {
        _ if has_text => DataType::Utf8,
        Kind::Count if !cells.any(|cell| matches!(cell, Cell::Real { .. })) => DataType::UInt64,
        _ => DataType::Float64,
    }
}

fn count(cell: &Cell) -> Option<u64> {
    if let Cell::Count(count) = cell { Some(*count) } else { None }
}

fn text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Text(text) => Some(text.clone()),
        Cell::Count(count) => Some(count.to_string()),
        Cell::Real { value, .. } => Some(value.to_string()),
        Cell::Absent => None,
    }
}

fn metadata(table: &Table) -> HashMap<String, String> {
    let facts = table.provenance().map(Provenance::facts).unwrap_or_default();
    let facts = facts.into_iter().map(|(name, value)| (format!("run_{name}"), value));
    let mut said: HashMap<String, String> = facts.collect();
    said.insert("title".to_owned(), table.title().to_owned());
    if !table.notes().is_empty() {
        said.insert("notes".to_owned(), table.notes().join("\n"));
    }
    said
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, UInt64Type};
    use pageset_report::Row;

    use super::*;

    #[test]
    fn every_cell_is_there_with_its_type() {
        let columns = vec![
            Column::label("policy", "policy"),
            Column::count("pages", "pages"),
            Column::measure("wait_ns", "wait").with_unit("ns"),
            Column::ratio("zone_percent", "zone"),
        ];
        let mut table = Table::new("t", columns);
        table.note("n");
        let far = u64::MAX;
        table.push(Row::new(["a".into(), far.into(), Cell::real(1.5, 1), Cell::Absent]));
        table.push(Row::new([Cell::Absent, Cell::Absent, Cell::Count(2), "many".into()]));
        let batch = batch(&table).unwrap();
        assert_eq!(batch["policy"].as_string::<i32>().value(0), "a");
        assert_eq!(batch["pages"].as_primitive::<UInt64Type>().value(0), far);
        assert!(batch["pages"].is_null(1) && batch["zone_percent"].is_null(0));
        assert_eq!(batch["wait_ns"].as_primitive::<Float64Type>().values(), &[1.5, 2.0]);
        assert_eq!(batch["zone_percent"].as_string::<i32>().value(1), "many");
        let schema = batch.schema();
        assert_eq!(schema.field(2).metadata()["unit"], "ns");
        assert_eq!((&*schema.metadata["title"], &*schema.metadata["notes"]), ("t", "n"));
    }
}
