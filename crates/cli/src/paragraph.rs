//! Running text in lines of at most 80 columns.

use std::io::{self, Write};

/// Widest line.
const WIDTH: usize = 80;

/// Writes `text` in lines, each beginning with `indent` spaces.
pub(crate) fn write(out: &mut dyn Write, indent: usize, text: &str) -> io::Result<()> {
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > WIDTH {
            writeln!(out)?;
            used = 0;
        }
        if used == 0 {
            write!(out, "{:indent$}{word}", "")?;
            used = indent + length;
        } else {
            write!(out, " {word}")?;
            used += 1 + length;
        }
    }
    writeln!(out)
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
