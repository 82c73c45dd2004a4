//! Writes CSV: a header with the keys of the columns, and one line per row, with all digits.
//!
//! The CSV has no comment lines, because many programs reject comment lines. Extra columns of every row hold
//! the provenance (`run_command`, `run_version` …). Rows of several files can therefore be combined without
//! losing their origin.

use std::io;

use super::Exporter;
use crate::{Cell, Provenance, Table, printable, printable_lines};

/// Writes tables as CSV.
pub(crate) struct Csv;

impl Exporter for Csv {
    fn export(&self, table: &Table, out: &mut dyn io::Write) -> io::Result<()> {
        let facts = table.provenance().map(Provenance::facts).unwrap_or_default();
        let mut writer = csv::WriterBuilder::new().from_writer(out);
        let keys = table.columns().iter().map(|column| column.key.clone());
        writer.write_record(keys.chain(facts.iter().map(|(name, _)| format!("run_{name}"))))?;
        for row in table.rows() {
            let values = row.cells.iter().map(field);
            writer
                .write_record(values.chain(facts.iter().map(|(_, value)| printable(value).into_owned())))?;
        }
        writer.flush()
    }
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Count(value) => value.to_string(),
        Cell::Real { value, .. } => value.to_string(),
        // A quoted cell may contain line ends.
        Cell::Text(text) => printable_lines(text).into_owned(),
        Cell::Absent => String::new(),
    }
}
