//! Text from outside this program: a recorded command, names of tasks and files, a recording's information.
//!
//! A terminal obeys control characters, and an invisible character can make one line look like another.
//! [`printable`] shows both kinds of characters as escapes, and [`shell_word`] quotes both kinds for a shell.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal obeys the character, or a reader cannot see the character.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    // The listed characters are marks and overrides of text direction, line and paragraph separators, and
    // zero-width characters.
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Puts a text on one line, with an escape for each hidden character: `\x1b` or `\u{202e}`.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Does the same as [`printable`], but keeps line ends and tabs. Use this function for whole results, whose
/// lines this program has made.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_hidden(character) && !matches!(character, '\n' | '\t'))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' if is_escaped('\n') => shown.push_str("\\n"),
            '\t' if is_escaped('\t') => shown.push_str("\\t"),
            _ if !is_escaped(character) => shown.push(character),
            '\0'..='\x7f' => write!(shown, "\\x{:02x}", u32::from(character)).expect("a string takes all"),
            _ => write!(shown, "\\u{{{:x}}}", u32::from(character)).expect("a string takes all"),
        }
    }
    Cow::Owned(shown)
}

/// Quotes a word for a shell. A word with hidden characters is written as `$'\033[31m'`, which bash, zsh and
/// POSIX of 2024 accept.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./,=:+@%".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.contains(is_hidden) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut typed = "$'".to_owned();
    for character in word.chars() {
        match character {
            '\n' => typed.push_str("\\n"),
            '\t' => typed.push_str("\\t"),
            '\'' | '\\' => typed.extend(['\\', character]),
            // Write three octal digits. A hexadecimal escape would also include a digit that follows.
            '\0'..='\x7f' if is_hidden(character) => {
                write!(typed, "\\{:03o}", u32::from(character)).expect("a string takes all");
            }
            _ if is_hidden(character) => {
                write!(typed, "\\u{:04x}", u32::from(character)).expect("a string takes all");
            }
            _ => typed.push(character),
        }
    }
    typed + "'"
}

/// Quotes a command with its arguments for a shell.
#[must_use]
pub fn command_line(words: &[impl AsRef<str>]) -> String {
    words.iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_as_escapes() {
        assert_eq!(
            printable("\u{1b}[31mred\u{9b}1m\n\u{202e}é µ ü中"),
            "\\x1b[31mred\\u{9b}1m\\n\\u{202e}é µ ü中"
        );
        assert!(matches!(printable("plain é"), Cow::Borrowed("plain é")));
        assert_eq!(printable_lines("a\tb\n\u{1b}c\r\n"), "a\tb\n\\x1bc\\x0d\n");
        for character in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let shown = printable(&character.to_string()).into_owned();
            assert!(!shown.is_empty() && !shown.contains(char::is_control), "{shown:?}");
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        for (word, typed) in [
            ("a/b-1.pgtrace", "a/b-1.pgtrace"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("\u{1b}[31mred\n", r"$'\033[31mred\n'"),
            ("\u{1}7'\\\u{202e}", r"$'\0017\'\\\u202e'"),
        ] {
            assert_eq!(shell_word(word), typed);
        }
        assert_eq!(command_line(&["sh", "-c", "make -s; make"]), "sh -c 'make -s; make'");
    }
}
