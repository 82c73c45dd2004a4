//! Breaks text into lines of at most 80 columns.

use std::io::{self, Write};

use pageset_report::wrap;

/// Maximum width of a line, in columns.
const WIDTH: usize = 80;

/// Writes `text` in lines that begin with `indent` spaces.
pub(crate) fn write(out: &mut dyn Write, indent: usize, text: &str) -> io::Result<()> {
    for line in wrap(text, WIDTH - indent) {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_80_columns() {
        let mut out = Vec::new();
        write(&mut out, 4, &"abcdef ".repeat(23)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let widths: Vec<_> = text.lines().map(str::len).collect();
        assert_eq!(widths, [80, 80, 10]);
        assert!(text.starts_with("    abcdef abcdef"), "{text}");
    }
}
