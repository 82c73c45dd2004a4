//! Terms of the field, with one-sentence explanations from the book's page of terms.

use std::sync::OnceLock;

/// The book's page of terms. The second-level headings of the page are the terms.
const BOOK: &str = include_str!("terms.txt");

/// Terms that are also everyday words. In a label, an everyday word that is a term gets an explanation. In a
/// sentence, an everyday word gets an explanation only as part of a longer term.
const EVERYDAY: [&str; 8] = ["page", "count", "high", "order", "policy", "batch", "zone", "tick"];

/// A term and its explanation.
struct Term {
    /// The name in lower case.
    name: String,
    meaning: String,
}

/// The place of a text on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A heading or a label. Nearly all words of headings and labels are terms.
    Label,
    /// A sentence.
    Sentence,
}

/// A piece of text. If the piece is a term, it has an explanation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    pub(super) text: &'t str,
    pub(super) meaning: Option<&'static str>,
}

/// Divides a text into pieces. Only the first occurrence of each term gets an explanation.
pub(super) fn pieces(text: &str, place: Place) -> Vec<Piece<'_>> {
    let mut all = Vec::new();
    let mut explained: Vec<&str> = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < text.len() {
        let is_start = !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let found = if is_start { term_at(&text[at..], place) } else { None };
        match found.filter(|(term, _)| !explained.contains(&term.name.as_str())) {
            Some((term, length)) => {
                if from < at {
                    all.push(Piece { text: &text[from..at], meaning: None });
                }
                all.push(Piece { text: &text[at..at + length], meaning: Some(&term.meaning) });
                explained.push(&term.name);
                (from, at) = (at + length, at + length);
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    if from < text.len() {
        all.push(Piece { text: &text[from..], meaning: None });
    }
    all
}

/// Finds the longest term at the beginning of a text, and its length in the text. The function also finds
/// plurals of terms.
fn term_at(text: &str, place: Place) -> Option<(&'static Term, usize)> {
    let is_end =
        |at: usize| !text[at..].chars().next().is_some_and(|next| next.is_alphanumeric() || next == '_');
    let matches = |term: &&'static Term| {
        let length = term.name.len();
        let begins = text.get(..length).is_some_and(|begin| begin.eq_ignore_ascii_case(&term.name));
        let plural = || text[length..].starts_with('s') && is_end(length + 1);
        if !begins {
            None
        } else if is_end(length) {
            Some(length)
        } else {
            plural().then_some(length + 1)
        }
    };
    let is_meant = |term: &&'static Term| place == Place::Label || !EVERYDAY.contains(&term.name.as_str());
    let found = terms().iter().filter(is_meant).filter_map(|term| Some((term, matches(&term)?)));
    found.max_by_key(|(_, length)| *length)
}

fn terms() -> &'static [Term] {
    static TERMS: OnceLock<Vec<Term>> = OnceLock::new();
    TERMS.get_or_init(|| {
        let entries = BOOK.split("\n## ").skip(1);
        let term = |entry: &str| {
            let (name, rest) = entry.split_once('\n')?;
            // The explanation of a term is the first paragraph below its heading.
            let meaning = rest.trim().split("\n\n").next()?;
            Some(Term { name: name.trim().to_lowercase(), meaning: plain(meaning) })
        };
        entries.filter_map(term).filter(|term| !term.name.is_empty() && !term.meaning.is_empty()).collect()
    })
}

/// Removes Markdown. Of a link, only the text stays.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some(at) = rest.find("](") {
        text += &rest[..at];
        let link = &rest[at + 2..];
        rest = link.find(')').map_or("", |end| &link[end + 1..]);
    }
    text += rest;
    let text: String = text.chars().filter(|mark| !['[', ']', '*', '`'].contains(mark)).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(text: &str, place: Place) -> Vec<&str> {
        let pieces = pieces(text, place);
        assert_eq!(pieces.iter().map(|piece| piece.text).collect::<String>(), text);
        pieces.iter().filter(|piece| piece.meaning.is_some()).map(|piece| piece.text).collect()
    }

    #[test]
    fn each_term_of_the_book_explains_itself() {
        assert!(terms().len() >= 20, "{}", terms().len());
        for term in terms() {
            assert_eq!(explained(&term.name, Place::Label), [term.name.as_str()]);
            assert!(term.meaning.len() > 10 && !term.meaning.contains(['[', '`', '*']), "{}", term.meaning);
        }
        let found = pieces("Refills", Place::Label);
        assert!(found[0].meaning.is_some_and(|meaning| meaning.contains("page set")), "{found:?}");
    }

    #[test]
    fn the_longest_term_is_explained_once_and_as_a_word() {
        let sentence =
            "Zone locks and zone visits: a refill, a drain, another refill, prefills at high order.";
        assert_eq!(explained(sentence, Place::Sentence), ["Zone locks", "zone visits", "refill", "drain"]);
        assert_eq!(explained("pages of order high_min", Place::Label), ["pages", "order"]);
        assert_eq!(explained("\u{e9}tick ticks\u{2026}", Place::Label), ["ticks"]);
        assert_eq!(explained("", Place::Label), Vec::<&str>::new());
    }
}
