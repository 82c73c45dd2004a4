//! Exporters of results. Each format has its own file.

mod csv;
mod json;
mod markdown;
mod text;

use std::io;

use crate::Table;

pub(crate) use csv::Csv;
pub(crate) use json::Json;
pub use json::json_document;
pub(crate) use markdown::Markdown;
pub(crate) use text::Text;

/// Writes a table in one format. [`Format::exporter`](crate::Format::exporter) returns the exporter of a
/// format.
pub trait Exporter {
    /// Writes `table` to `out`, ending with a newline.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    fn export(&self, table: &Table, out: &mut dyn io::Write) -> io::Result<()>;

    /// Returns the text of `table` in this format.
    fn to_string(&self, table: &Table) -> String {
        let mut bytes = Vec::new();
        self.export(table, &mut bytes).expect("writing to memory does not fail");
        String::from_utf8(bytes).expect("exporters write UTF-8")
    }
}
