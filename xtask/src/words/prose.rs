//! Finds the prose of a file: the comments of a source, or the lines of a page without code, tables and
//! headings.

use std::path::Path;

enum Kind {
    Page,
    Slashes,
    Hashes,
}

fn kind(name: &str) -> Option<Kind> {
    match Path::new(name).extension()?.to_str()? {
        "md" => Some(Kind::Page),
        "rs" | "c" | "h" | "cpp" | "mjs" | "js" => Some(Kind::Slashes),
        "py" | "pyi" | "sh" | "toml" => Some(Kind::Hashes),
        _ => None,
    }
}

/// Whether this module can find the prose of files of this kind.
pub(super) fn is_known(name: &str) -> bool {
    kind(name).is_some()
}

/// Returns the text of a comment line after its mark.
fn behind_mark(line: &str) -> Option<&str> {
    let mark = ["//!", "///", "//", "*"].into_iter().find(|mark| line.starts_with(mark))?;
    Some(line[mark.len()..].trim())
}

/// Returns the entry of a list without its bullet or number.
fn without_bullet(line: &str) -> &str {
    let digits = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let rest = match line.strip_prefix(['-', '*', '+', '>']) {
        Some(rest) => rest,
        None if digits.len() < line.len() && digits.starts_with('.') => &digits[1..],
        None => return line,
    };
    if rest.starts_with(char::is_whitespace) { rest.trim_start() } else { line }
}

/// Returns each line of prose with its line number.
pub(super) fn prose<'a>(name: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let Some(kind) = kind(name) else { return Vec::new() };
    let mut prose = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        let stripped = line.trim();
        let (inside, left_out): (_, &[&str]) = match kind {
            Kind::Page => (Some(stripped), &["|", "#", "<", "![", "["]),
            Kind::Slashes => (behind_mark(stripped), &["|", "#", "[`", "SAFETY"]),
            Kind::Hashes => {
                let inside = stripped.strip_prefix('#').filter(|rest| rest.starts_with(char::is_whitespace));
                // Keep all blanks after the first blank, because they belong to the comment's text.
                prose.extend(inside.map(|rest| (index + 1, &rest[1..])).filter(|(_, rest)| !rest.is_empty()));
                continue;
            }
        };
        let Some(inside) = inside else { continue };
        if inside.starts_with("```") || inside.starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        let is_indented = matches!(kind, Kind::Page) && line.starts_with("    ");
        if is_code || is_indented || left_out.iter().any(|mark| inside.starts_with(mark)) {
            continue;
        }
        let line = without_bullet(inside);
        if !line.is_empty() {
            prose.push((index + 1, line));
        }
    }
    prose
}
