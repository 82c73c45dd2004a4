//! Breaks running text into lines.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// The treatment of a word that is longer than a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongWord {
    /// The word is broken.
    Broken,
    /// The word gets its own line, which is longer than the limit.
    Whole,
}

/// Breaks text into lines of at most `width` characters, at spaces if possible. A text without words becomes
/// one empty line.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap_with(text, width, LongWord::Broken)
}

pub(crate) fn wrap_with(text: &str, width: usize, long_word: LongWord) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let options = Options::new(width)
        .break_words(long_word == LongWord::Broken)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    textwrap::wrap(&text, options).into_iter().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_long_words_as_asked() {
        assert_eq!(wrap("one  two\nthree", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap_with("abcdefgh i", 3, LongWord::Whole), ["abcdefgh", "i"]);
        assert_eq!(wrap("", 3), [""]);
    }
}
