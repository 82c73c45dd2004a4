//! JSON: one object, indented, numbers as numbers.

use std::io;

use serde::Serialize;

use super::Exporter;
use crate::Table;

/// Writes tables as JSON.
pub(crate) struct Json;

impl Exporter for Json {
    fn export(&self, table: &Table, out: &mut dyn io::Write) -> io::Result<()> {
        json_document(table, out)
    }
}

/// Writes any value as an indented JSON document that ends with a newline.
///
/// For documents that are more than one table, such as `{"trace": …, "rows": …}`. Keys come in the order in which the
/// value gives them, so use structs or ordered maps where two runs have to give the same bytes.
///
/// # Errors
///
/// Those of `out`, and of values that JSON cannot express (a map whose keys are not strings).
pub fn json_document<T: Serialize + ?Sized>(value: &T, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}
