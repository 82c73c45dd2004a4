//! Splits Rust sources into words, without comments, strings and tests, and finds the items that a file
//! defines.

use std::collections::BTreeSet;

/// A token of a source: a word or a punctuation mark.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Mark(char),
}

impl Token {
    pub(crate) fn is(&self, mark: char) -> bool {
        *self == Token::Mark(mark)
    }

    pub(crate) fn word(&self) -> Option<&str> {
        match self {
            Token::Word(word) => Some(word),
            Token::Mark(_) => None,
        }
    }
}

/// Returns the tokens of a source, without items that have the attribute `#[cfg(test)]`.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    without_tests(&all_tokens(&text.chars().collect::<Vec<_>>()))
}

fn all_tokens(text: &[char]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    let starts =
        |at: usize, with: &str| with.chars().enumerate().all(|(i, mark)| text.get(at + i) == Some(&mark));
    while at < text.len() {
        let character = text[at];
        if starts(at, "//") {
            at += text[at..].iter().take_while(|character| **character != '\n').count();
        } else if starts(at, "/*") {
            at += 2;
            while at < text.len() && !starts(at, "*/") {
                at += 1;
            }
            at += 2;
        } else if character == '"' {
            at = behind_string(text, at);
        } else if character == '\'' {
            // A quote begins a character literal or a lifetime.
            if text.get(at + 1) == Some(&'\\') {
                at += 3;
                at +=
                    text[at.min(text.len())..].iter().take_while(|character| **character != '\'').count() + 1;
            } else if text.get(at + 2) == Some(&'\'') {
                at += 3;
            } else {
                at += 1;
                at += text[at..]
                    .iter()
                    .take_while(|character| character.is_alphanumeric() || **character == '_')
                    .count();
            }
        } else if character.is_alphanumeric() || character == '_' {
            let word: String = text[at..]
                .iter()
                .take_while(|character| character.is_alphanumeric() || **character == '_')
                .collect();
            at += word.chars().count();
            let hashes = text[at..].iter().take_while(|character| **character == '#').count();
            if matches!(word.as_str(), "r" | "br" | "cr") && text.get(at + hashes) == Some(&'"') {
                let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                at += hashes + 1;
                while at < text.len() && !starts(at, &end) {
                    at += 1;
                }
                at += end.len();
            } else if !word.starts_with(|first: char| first.is_ascii_digit()) {
                tokens.push(Token::Word(word));
            }
        } else {
            if !character.is_whitespace() {
                tokens.push(Token::Mark(character));
            }
            at += 1;
        }
    }
    tokens
}

fn behind_string(text: &[char], mut at: usize) -> usize {
    at += 1;
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// Returns the place of the bracket that closes the bracket at `at`.
fn closing(tokens: &[Token], at: usize, open: char, close: char) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        if token.is(open) {
            depth += 1;
        } else if token.is(close) {
            depth -= 1;
            if depth == 0 {
                return index;
            }
        }
    }
    tokens.len().saturating_sub(1)
}

fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let words =
        |at: usize, count: usize| tokens[at..].iter().take(count).filter_map(Token::word).collect::<Vec<_>>();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        // `#[cfg(test)]`
        if tokens[at].is('#') && words(at, 7) == ["cfg", "test"] {
            at += 7;
            // The item after the attribute ends with its closing brace, or with a semicolon.
            let end = tokens[at..].iter().position(|token| token.is('{') || token.is(';'));
            let end = at + end.unwrap_or(0);
            at = if tokens.get(end).is_some_and(|token| token.is('{')) {
                closing(tokens, end, '{', '}')
            } else {
                end
            } + 1;
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The items that a file defines.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Items {
    /// Names of types, traits, functions, constants and macros.
    pub(crate) free: BTreeSet<String>,
    /// Names of functions of types and traits. Functions of an `impl` of a trait are left out, because the
    /// trait defines them.
    pub(crate) methods: BTreeSet<String>,
}

pub(crate) fn items(tokens: &[Token]) -> Items {
    let mut items = Items::default();
    let mut at = 0;
    // The place where the current `impl` or `trait` ends, and whether it defines its functions: false in an
    // `impl` of a trait.
    let mut body: Option<(usize, bool)> = None;
    while at < tokens.len() {
        if body.is_some_and(|(end, _)| at >= end) {
            body = None;
        }
        let is_first = at == 0
            || matches!(&tokens[at - 1], Token::Mark('}' | '{' | ';' | ']' | ')'))
            || is_prefix(&tokens[at - 1]);
        let name = tokens.get(at + 1).and_then(Token::word);
        match (tokens[at].word(), name) {
            (Some("impl"), _) if is_first => {
                let open = at + tokens[at..].iter().position(|token| token.is('{')).unwrap_or(0);
                // The word `for` before `<` belongs to a bound such as `for<'a>`, not to an `impl` of a
                // trait.
                let is_of_trait =
                    (at..open).any(|index| tokens[index].word() == Some("for") && !tokens[index + 1].is('<'));
                body = Some((closing(tokens, open, '{', '}'), !is_of_trait));
                at = open;
            }
            (Some("trait"), Some(name)) if is_first => {
                items.free.insert(name.to_owned());
                let open = at + tokens[at..].iter().position(|token| token.is('{')).unwrap_or(0);
                body = Some((closing(tokens, open, '{', '}'), true));
                at = open;
            }
            (Some("fn"), Some(name)) => {
                match body {
                    None => items.free.insert(name.to_owned()),
                    Some((_, true)) => items.methods.insert(name.to_owned()),
                    Some((_, false)) => false,
                };
                at += 1;
            }
            (Some("struct" | "enum" | "union" | "const" | "static" | "type"), Some(name))
                if is_first && body.is_none() && !matches!(name, "fn" | "unsafe" | "mut" | "_") =>
            {
                items.free.insert(name.to_owned());
                at += 1;
            }
            (Some("macro_rules"), _) => {
                // Add the name of a macro with and without `!`. Imports name a macro without `!`, and calls
                // name a macro with `!`.
                let name = tokens.get(at + 2).and_then(Token::word);
                items.free.extend(name.into_iter().flat_map(|name| [name.to_owned(), format!("{name}!")]));
            }
            _ => {}
        }
        at += 1;
    }
    items
}

/// Whether this word may stand before the keyword of an item.
fn is_prefix(token: &Token) -> bool {
    matches!(token.word(), Some("pub" | "unsafe" | "const" | "default"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_comments_strings_and_tests_are_left_out() {
        let text = r##"
            // comment
            fn a<'x>(c: char) { let s = "string \" more"; let r = r#"raw "one""#; 'q'; '\n'; }
            #[cfg(test)]
            mod tests { fn hidden() {} }
            fn z() {}
        "##;
        let words: Vec<_> = tokens(text).iter().filter_map(|token| token.word().map(str::to_owned)).collect();
        assert_eq!(words, ["fn", "a", "c", "char", "let", "s", "let", "r", "fn", "z"]);
    }

    #[test]
    fn items_are_what_a_file_defines() {
        let text = "
            pub(crate) struct Zone<const N: usize> { fn_count: u8 }
            impl Zone { pub(crate) const fn lock(&self) {} }
            impl Clone for Zone { fn clone(&self) -> Self { todo() } }
            trait Sink { fn take(&mut self); }
            const MAX: usize = 1;
            fn free() {}
            macro_rules! list { () => {} }
        ";
        let items = items(&tokens(text));
        assert_eq!(items.free.iter().collect::<Vec<_>>(), ["MAX", "Sink", "Zone", "free", "list", "list!"]);
        assert_eq!(items.methods.iter().collect::<Vec<_>>(), ["lock", "take"]);
    }
}
