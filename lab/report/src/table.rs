//! A result: typed columns, rows, notes, provenance.

use std::fmt::Write as _;

use serde::ser::{SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::export::{Exporter as _, Text};
use crate::{Cell, Provenance};

/// The side of a column where a text table aligns its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left side, for names.
    Left,
    /// The right side, for numbers.
    Right,
}

/// The kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A name of the row. A label is never turned into a percentage.
    Label,
    /// A number of things, which is whole.
    Count,
    /// A measured quantity.
    Measure,
    /// A relative value: a rate, a percentage, a quotient.
    Ratio,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Name in JSON and CSV: lower case, words joined by `_`, the unit last. The name does not change between
    /// versions.
    pub key: String,
    /// Name in tables, in words. Text tables put the words of a name on several lines to save width.
    pub heading: String,
    /// Unit that is shown under the heading. The text is empty if the heading contains the unit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The side where the column's values are aligned.
    #[serde(skip)]
    pub align: Align,
    /// The kind of the column's values.
    pub kind: Kind,
}

impl Column {
    /// Makes a column that names the rows.
    #[must_use]
    pub fn label(key: &str, heading: &str) -> Self {
        Self::new(key, heading, Align::Left, Kind::Label)
    }

    /// Makes a column of whole numbers.
    #[must_use]
    pub fn count(key: &str, heading: &str) -> Self {
        Self::new(key, heading, Align::Right, Kind::Count)
    }

    /// Makes a column of measured quantities.
    #[must_use]
    pub fn measure(key: &str, heading: &str) -> Self {
        Self::new(key, heading, Align::Right, Kind::Measure)
    }

    /// Makes a column of rates, percentages or quotients.
    #[must_use]
    pub fn ratio(key: &str, heading: &str) -> Self {
        Self::new(key, heading, Align::Right, Kind::Ratio)
    }

    /// Returns the column with another heading.
    #[must_use]
    pub fn with_heading(mut self, heading: &str) -> Self {
        heading.clone_into(&mut self.heading);
        self
    }

    /// Returns the column with a unit.
    #[must_use]
    pub fn with_unit(mut self, unit: &str) -> Self {
        unit.clone_into(&mut self.unit);
        self
    }

    /// Returns heading and unit on one line, as in Markdown.
    #[must_use]
    pub fn heading_with_unit(&self) -> String {
        let mut text = self.heading.clone();
        if !self.unit.is_empty() {
            let _ = write!(text, " ({})", self.unit);
        }
        text
    }

    fn new(key: &str, heading: &str, align: Align, kind: Kind) -> Self {
        Self { key: key.to_owned(), heading: heading.to_owned(), unit: String::new(), align, kind }
    }
}

/// The values of one row, with one value for each column.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The cells in the order of the table's columns.
    pub cells: Vec<Cell>,
}

impl Row {
    /// Makes a row of these cells.
    #[must_use]
    pub fn new(cells: impl IntoIterator<Item = Cell>) -> Self {
        Self { cells: cells.into_iter().collect() }
    }
}

/// A result.
///
/// # Invariants
///
/// Every row has as many cells as there are columns, and column keys are distinct.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    title: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
    notes: Vec<String>,
    provenance: Option<Provenance>,
}

impl Table {
    /// An empty table.
    ///
    /// # Panics
    ///
    /// Panics if two columns have the same key.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: Vec<Column>) -> Self {
        for (index, column) in columns.iter().enumerate() {
            let repeated = columns[..index].iter().any(|earlier| earlier.key == column.key);
            assert!(!repeated, "two columns have the key `{}`", column.key);
        }
        // INVARIANT: keys are distinct, as checked above, and there are no rows yet.
        Self { title: title.into(), columns, rows: Vec::new(), notes: Vec::new(), provenance: None }
    }

    /// Adds a row at the end.
    ///
    /// # Panics
    ///
    /// Panics unless the row has one cell for each column.
    #[track_caller]
    pub fn push(&mut self, row: Row) {
        assert_eq!(row.cells.len(), self.columns.len(), "a row has one cell for each column");
        self.rows.push(row);
    }

    /// Adds a sentence below the table. The sentence should be necessary to understand the table.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Returns the table with its provenance.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = Some(provenance);
        self
    }

    /// Returns the table without these columns. Unknown keys are ignored.
    #[must_use]
    pub fn without(mut self, keys: &[&str]) -> Self {
        let kept: Vec<bool> =
            self.columns.iter().map(|column| !keys.contains(&column.key.as_str())).collect();
        let mut kept_columns = kept.iter();
        self.columns.retain(|_| *kept_columns.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut kept_cells = kept.iter();
            row.cells.retain(|_| *kept_cells.next().unwrap_or(&true));
        }
        // INVARIANT: each row has lost the cells of the removed columns.
        self
    }

    /// Returns the table without columns that have no value in any row.
    #[must_use]
    pub fn without_empty_columns(self) -> Self {
        let is_empty = |at: usize| self.rows.iter().all(|row| row.cells[at] == Cell::Absent);
        let columns = self.columns.iter().enumerate();
        let empty = columns.filter(|(at, _)| !self.rows.is_empty() && is_empty(*at));
        let keys: Vec<String> = empty.map(|(_, column)| column.key.clone()).collect();
        self.without(&keys.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Returns the table as plain text, in lines of at most `width` columns. A `width` below 20 counts as 20.
    #[must_use]
    pub fn to_text(&self, width: usize) -> String {
        Text { width: width.max(20) }.to_string(self)
    }

    /// The title, on one line.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The columns, from left to right.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows, from top to bottom.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The sentences below the table.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The origin of the numbers. `None` if the origin was not set.
    #[must_use]
    pub fn provenance(&self) -> Option<&Provenance> {
        self.provenance.as_ref()
    }

    /// Index of the column with this key.
    #[must_use]
    pub fn column_index(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }

    /// The columns and rows. The caller may change values, but not the numbers of columns and rows.
    pub(crate) fn parts_mut(&mut self) -> (&mut [Column], &mut [Row]) {
        (&mut self.columns, &mut self.rows)
    }
}

/// Writes `{"title": …, "columns": […], "rows": [{key: value}], "notes": […], "provenance": {…}}`. The keys
/// of a row are in the order of the columns. Empty notes and missing provenance are left out.
impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Table", 5)?;
        map.serialize_field("title", &self.title)?;
        map.serialize_field("columns", &self.columns)?;
        map.serialize_field("rows", &RowMaps(self))?;
        match self.notes.as_slice() {
            [] => map.skip_field("notes")?,
            notes => map.serialize_field("notes", notes)?,
        }
        match &self.provenance {
            None => map.skip_field("provenance")?,
            Some(provenance) => map.serialize_field("provenance", provenance)?,
        }
        map.end()
    }
}

/// The rows of a table as a list of maps.
struct RowMaps<'a>(&'a Table);

impl Serialize for RowMaps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.rows.len()))?;
        for row in &self.0.rows {
            list.serialize_element(&RowMap { columns: &self.0.columns, row })?;
        }
        list.end()
    }
}

/// One row as a map from column key to value.
struct RowMap<'a> {
    columns: &'a [Column],
    row: &'a Row,
}

impl Serialize for RowMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.columns.len()))?;
        for (column, cell) in self.columns.iter().zip(&self.row.cells) {
            map.serialize_entry(&column.key, cell)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "two columns have the key `pages`")]
    fn repeated_keys_are_refused() {
        let _ = Table::new("t", vec![Column::count("pages", "a"), Column::count("pages", "b")]);
    }

    #[test]
    #[should_panic(expected = "a row has one cell for each column")]
    fn short_rows_are_refused() {
        Table::new("t", vec![Column::count("pages", "pages")]).push(Row::new([]));
    }

    #[test]
    fn columns_without_values_go_and_others_stay() {
        let columns = ["a", "b", "c"].map(|key| Column::count(key, key));
        let mut table = Table::new("t", columns.into());
        table.push(Row::new([Cell::Count(1), Cell::Absent, Cell::Absent]));
        table.push(Row::new([Cell::Absent, Cell::Absent, Cell::Count(3)]));
        let table = table.without_empty_columns();
        assert_eq!((table.column_index("a"), table.column_index("c")), (Some(0), Some(1)));
        let table = table.without(&["a", "x"]);
        assert_eq!(table.rows()[1].cells, [Cell::Count(3)]);
        let none = Table::new("t", vec![Column::count("a", "a")]).without_empty_columns();
        assert_eq!(none.columns().len(), 1, "a table without rows keeps its columns");
    }

    #[test]
    fn text_is_as_wide_as_asked() {
        let names: Vec<String> = (0..9).map(|at| format!("column_{at}")).collect();
        let columns = names.iter().map(|name| Column::count(name, name)).collect();
        let mut table = Table::new("A title of a few more words than fit", columns);
        table.push(Row::new((0..9).map(Cell::Count)));
        for width in [20, 33, 60, 200] {
            let text = table.to_text(width);
            assert!(text.lines().all(|line| line.len() <= width), "{width}: {text}");
        }
    }

    #[test]
    fn columns_are_found_by_key() {
        let table = Table::new("t", vec![Column::label("policy", "policy"), Column::count("pages", "pages")]);
        assert_eq!(table.column_index("pages"), Some(1));
        assert_eq!(table.column_index("page"), None);
    }
}
