//! Writes plain text that survives e-mail: ASCII, at most 80 columns, no trailing spaces, no colours.
//!
//! A table wider than 80 columns is split into blocks of columns. Each block begins with the first column
//! again. The words of a heading are stacked, so a column is only as wide as its numbers or the longest word
//! of its heading.

use std::io;

use comfy_table::{CellAlignment, ColumnConstraint, LineStyle, TableStyle, Width};

use super::Exporter;
use crate::number::{SHORT_FORM_NOTE, is_short, text_of};
use crate::{Align, Column, Kind, Provenance, Table, wrap};

/// Maximum line width.
const WIDTH: usize = 80;
/// Spaces between two columns.
const GAP: usize = 2;
/// Maximum width of a column. A text that is wider than its column is wrapped. Two columns of the maximum
/// width and the gap fit into a line.
const COLUMN_WIDTH: usize = (WIDTH - GAP) / 2;

/// Writes tables as plain text.
pub(crate) struct Text {
    /// Maximum line width.
    pub(crate) width: usize,
}

impl Text {
    /// Writes tables in lines of at most 80 columns, for e-mail.
    pub(crate) const PLAIN: Self = Self { width: WIDTH };
}

impl Exporter for Text {
    fn export(&self, table: &Table, out: &mut dyn io::Write) -> io::Result<()> {
        write_wrapped(out, self.width, ("", ""), &ascii(table.title()))?;
        let columns: Vec<_> = (0..table.columns().len()).map(|index| Stacked::new(table, index)).collect();
        for block in blocks(&columns, self.width) {
            writeln!(out)?;
            for line in layout(&block).lines() {
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        let short = table.rows().iter().flat_map(|row| &row.cells).any(is_short);
        let notes = table.notes().iter().map(String::as_str).chain(short.then_some(SHORT_FORM_NOTE));
        let notes: Vec<_> = notes.map(ascii).collect();
        if !notes.is_empty() {
            writeln!(out)?;
        }
        notes.iter().try_for_each(|note| write_wrapped(out, self.width, ("", ""), note))?;
        let facts = table.provenance().map(Provenance::facts).unwrap_or_default();
        if !facts.is_empty() {
            writeln!(out)?;
        }
        facts.iter().try_for_each(|(name, value)| {
            write_wrapped(out, self.width, (&format!("{name:<9}"), &" ".repeat(9)), &ascii(value))
        })
    }
}

/// A column as text: heading lines, then one value per row.
struct Stacked {
    heading: Vec<String>,
    values: Vec<String>,
    align: Align,
    width: usize,
}

impl Stacked {
    fn new(table: &Table, index: usize) -> Self {
        let column = &table.columns()[index];
        let values: Vec<_> = table.rows().iter().map(|row| ascii(&text_of(&row.cells[index]))).collect();
        let values_width = values.iter().map(String::len).max().unwrap_or(0).min(COLUMN_WIDTH);
        let heading = stack(column, values_width);
        let width = heading.iter().map(String::len).max().unwrap_or(0).max(values_width);
        Self { heading, values, align: column.align, width }
    }
}

/// Puts the words of a heading into as few lines as fit the width. The unit has its own line.
fn stack(column: &Column, values_width: usize) -> Vec<String> {
    let heading = ascii(&column.heading);
    let longest = heading.split(' ').map(str::len).max().unwrap_or(0);
    let width = longest.max(values_width).min(COLUMN_WIDTH);
    let mut lines = wrap(&heading, width);
    if !column.unit.is_empty() && column.kind != Kind::Label {
        lines.extend(wrap(&ascii(&column.unit), COLUMN_WIDTH));
    }
    lines
}

/// Divides columns into blocks that fit into a line. Every block begins with the first column.
fn blocks(columns: &[Stacked], line_width: usize) -> Vec<Vec<&Stacked>> {
    let Some((first, rest)) = columns.split_first() else { return Vec::new() };
    let mut blocks = vec![vec![first]];
    let mut width = first.width;
    for column in rest {
        let block = blocks.last_mut().expect("there is always one block");
        if block.len() > 1 && width + GAP + column.width > line_width {
            width = first.width + GAP + column.width;
            blocks.push(vec![first, column]);
        } else {
            width += GAP + column.width;
            block.push(column);
        }
    }
    blocks
}

/// Returns the text of one block.
fn layout(block: &[&Stacked]) -> String {
    let height = block.iter().map(|column| column.heading.len()).max().unwrap_or(0);
    let rows = block[0].values.len();
    let mut layout = comfy_table::Table::new();
    layout.load_style(TableStyle::new().header_separator(LineStyle::none().fill('-')));
    layout.set_header(block.iter().map(|column| {
        let blank = vec![""; height - column.heading.len()];
        let lines: Vec<_> = blank.into_iter().chain(column.heading.iter().map(String::as_str)).collect();
        lines.join("\n")
    }));
    for row in 0..rows {
        layout.add_row(block.iter().map(|column| column.values[row].as_str()));
    }
    for (index, (column, shape)) in block.iter().zip(layout.column_iter_mut()).enumerate() {
        let left = if index == 0 { 0 } else { GAP };
        shape.set_padding((u16::try_from(left).unwrap_or(0), 0));
        shape.set_cell_alignment(match column.align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
        let width = u16::try_from(left + column.width).unwrap_or(u16::MAX);
        shape.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
    }
    layout.to_string()
}

/// Turns text into printable ASCII on one line. White space becomes a space, and other characters become `?`.
fn ascii(text: &str) -> String {
    let plain = |character: char| match character {
        ' '..='~' => character,
        _ if character.is_whitespace() => ' ',
        _ => '?',
    };
    text.chars().map(plain).collect()
}

/// Writes `text` in lines of at most `width` columns. `first` comes before the first line, and `other` before
/// all other lines.
fn write_wrapped(
    out: &mut dyn io::Write,
    width: usize,
    (first, other): (&str, &str),
    text: &str,
) -> io::Result<()> {
    for (index, line) in wrap(text, width.saturating_sub(first.len()).max(1)).iter().enumerate() {
        let lead = if index == 0 { first } else { other };
        writeln!(out, "{}", format!("{lead}{line}").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_cut_and_spaces_collapse() {
        assert_eq!(wrap("a  bc def", 3), ["a", "bc", "def"]);
        assert_eq!(wrap("a bcdefgh", 3), ["a", "bcd", "efg", "h"]);
        assert_eq!(wrap("", 3), [""]);
    }

    #[test]
    fn text_becomes_ascii() {
        assert_eq!(ascii("a\u{b5}s\tb\u{1b}[1m"), "a?s b?[1m");
    }
}
