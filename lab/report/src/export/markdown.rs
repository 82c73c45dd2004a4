//! Writes Markdown: the title in bold, a table of any width, and notes and provenance as a list.

use std::io;

use super::Exporter;
use crate::number::{SHORT_FORM_NOTE, is_short, text_of};
use crate::{Align, Provenance, Table, printable};

/// Writes tables as Markdown.
pub(crate) struct Markdown;

impl Exporter for Markdown {
    fn export(&self, table: &Table, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(out, "**{}**\n", inline(table.title()))?;
        line(out, table.columns().iter().map(|column| inline(&column.heading_with_unit())))?;
        line(out, table.columns().iter().map(|column| rule(column.align).to_owned()))?;
        for row in table.rows() {
            line(out, row.cells.iter().map(|cell| inline(&text_of(cell))))?;
        }
        let short = table.rows().iter().flat_map(|row| &row.cells).any(is_short);
        let notes = table.notes().iter().map(String::as_str).chain(short.then_some(SHORT_FORM_NOTE));
        let mut items: Vec<_> = notes.map(inline).collect();
        let facts = table.provenance().map(Provenance::facts).unwrap_or_default();
        items.extend(
            facts.iter().map(|(name, value)| format!("{name}: `{}`", printable(value).replace('`', "'"))),
        );
        if !items.is_empty() {
            writeln!(out)?;
        }
        items.iter().try_for_each(|item| writeln!(out, "- {item}"))
    }
}

fn line(out: &mut dyn io::Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn rule(align: Align) -> &'static str {
    match align {
        Align::Left => "---",
        Align::Right => "---:",
    }
}

/// Escapes text, so that the text stays in its cell and is not read as markup.
fn inline(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for character in printable(&text.replace(['\n', '\r'], " ")).chars() {
        match character {
            '|' | '\\' | '`' | '*' | '_' | '<' | '[' => result.extend(['\\', character]),
            _ => result.push(character),
        }
    }
    result
}
