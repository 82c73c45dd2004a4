//! Writes JSON: one indented object, with numbers as numbers.

use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{Formatter, PrettyFormatter};

use super::Exporter;
use crate::{Table, is_hidden};

/// Writes tables as JSON.
pub(crate) struct Json;

impl Exporter for Json {
    fn export(&self, table: &Table, out: &mut dyn io::Write) -> io::Result<()> {
        json_document(table, out)
    }
}

/// Writes any value as an indented JSON document that ends with a newline.
///
/// Use this function for documents larger than one table, such as `{"trace": …, "rows": …}`. Keys are in the
/// value's order. Use structs or ordered maps if two runs must give the same bytes.
///
/// # Errors
///
/// Errors of `out`, and an error if JSON cannot express a value, such as a map whose keys are not strings.
pub fn json_document<T: Serialize + ?Sized>(value: &T, out: &mut dyn io::Write) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(&mut *out, Escaping(PrettyFormatter::new()));
    value.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

/// Indents the document, and escapes every hidden character. JSON itself permits hidden characters above
/// U+001F without an escape.
struct Escaping(PrettyFormatter<'static>);

impl Formatter for Escaping {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for part in fragment.split_inclusive(is_hidden) {
            let hidden = part.chars().next_back().filter(|last| is_hidden(*last));
            let plain = &part[..part.len() - hidden.map_or(0, char::len_utf8)];
            out.write_all(plain.as_bytes())?;
            if let Some(hidden) = hidden {
                // Every hidden character fits into one UTF-16 unit.
                write!(out, "\\u{:04x}", u32::from(hidden))?;
            }
        }
        Ok(())
    }

    fn begin_array<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: io::Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_15_hidden_characters_are_escaped_and_read_back() {
        let text = "a\u{1b}[31m\u{7f}\u{9b}b\u{202e}\n\u{feff}é\"";
        let mut out = Vec::new();
        json_document(&[text], &mut out).unwrap();
        let written = String::from_utf8(out).unwrap();
        assert_eq!(written, "[\n  \"a\\u001b[31m\\u007f\\u009bb\\u202e\\n\\ufeffé\\\"\"\n]\n");
        assert_eq!(serde_json::from_str::<[String; 1]>(&written).unwrap(), [text]);
    }
}
