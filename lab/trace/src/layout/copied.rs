//! Reads a text as people post it: indented, quoted, after a log's time stamps, or with other line ends.

use std::borrow::Cow;

/// Finds the first line that `starts` recognises behind some prefix, and removes the same prefix from all
/// lines. The numbers of lines do not change.
pub(super) fn without_prefix<'text>(text: &'text str, starts: impl Fn(&str) -> bool) -> Cow<'text, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let begins = |line: &'text str| {
        line.char_indices().map(|(at, _)| at).take(80).find(|at| starts(&line[*at..])).map(|at| &line[..at])
    };
    let Some(prefix) = text.lines().find_map(begins) else { return Cow::Borrowed(text) };
    if prefix.is_empty() {
        return Cow::Borrowed(text);
    }
    let lines = text.lines().map(|line| stripped(line, prefix));
    Cow::Owned(lines.flat_map(|line| [line, "\n"]).collect())
}

/// Removes from `line` its prefix, which has the form of `prefix`.
fn stripped<'line>(line: &'line str, prefix: &str) -> &'line str {
    let is_mark = |c: char| c.is_whitespace() || matches!(c, '>' | '|' | '#');
    if prefix.chars().all(is_mark) {
        return line.trim_start_matches(is_mark);
    }
    // In a log, the time or name before the text has the same width in every line, unless a number in this
    // prefix gets more digits.
    let word = prefix.trim_end();
    let last = word.chars().next_back();
    let is_alike =
        |c: char| Some(c) == last || c.is_ascii_digit() && last.is_some_and(|last| last.is_ascii_digit());
    let same_width = line.get(..word.len()).filter(|before| before.chars().next_back().is_some_and(is_alike));
    let width = same_width.map(str::len).or_else(|| {
        let last = last?;
        let near = line.get(..word.len() + 4).unwrap_or(line);
        near.find(last).map(|at| at + last.len_utf8())
    });
    line[width.unwrap_or(0)..].trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(text: &str) -> String {
        without_prefix(text, |line| line.starts_with("Node ")).into_owned()
    }

    #[test]
    fn what_stands_before_every_line_is_left_out() {
        for text in [
            "Node 0\n  free 7\n",
            "    Node 0\n      free 7\n",
            "> Node 0\n>   free 7\n",
            "> > Node 0\n>> free 7\n",
            "\u{feff}Node 0\r\n  free 7\r\n",
            "[    9.876543] Node 0\n[    9.876544]   free 7\n",
            "[99999.876543] Node 0\n[100000.876544]   free 7\n",
            "Jan  1 12:00:00 host kernel: Node 0\nJan  1 12:00:01 host kernel:   free 7\n",
            "    9\tNode 0\n   10\t  free 7\n",
            "9:Node 0\n10:  free 7\n",
            "2024-01-01T00:00:00.123+01:00 | Node 0\n2024-01-01T00:00:00.124+01:00 |  free 7\n",
        ] {
            let zone = zone(text);
            let lines: Vec<_> = zone.lines().collect();
            assert_eq!(lines[0], "Node 0", "{text:?}");
            assert_eq!(lines[1].trim(), "free 7", "{text:?}");
        }
    }

    #[test]
    fn lines_keep_their_numbers_and_odd_ones_stay() {
        assert_eq!(zone("$ cat zoneinfo\n\n  Node 0\n\nx"), "$ cat zoneinfo\n\nNode 0\n\nx\n");
        assert_eq!(zone("[ 1.0] é\n[ 1.0] Node 0\né"), "é\nNode 0\né\n");
        assert_eq!(zone("hello"), "hello");
    }
}
