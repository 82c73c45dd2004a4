//! Matches the regular expressions of `patterns.txt`. These expressions use "not followed by", which the
//! crate `regex` lacks.
//!
//! The matcher tries all ways to match, one after another. Bad patterns may take long on long lines, but
//! lines of prose are short.

/// A pattern is a list of alternatives. An alternative is a sequence of pieces.
pub(super) struct Pattern {
    alternatives: Vec<Vec<Piece>>,
}

enum Piece {
    Begin,
    WordBoundary,
    One(Set),
    Group(Pattern),
    NotFollowedBy(Pattern),
    /// The piece is repeated as often as possible within these bounds.
    Repeated(Box<Piece>, usize, usize),
}

/// A set of characters. A character is in the set if one of the items contains it; in a negated set, if no
/// item contains it.
struct Set {
    is_negated: bool,
    items: Vec<Item>,
}

enum Item {
    Range(char, char),
    Space,
    Digit,
}

impl Set {
    fn has(&self, character: char) -> bool {
        let is_in = self.items.iter().any(|item| match item {
            Item::Range(first, last) => (*first..=*last).contains(&character),
            Item::Space => character.is_whitespace(),
            Item::Digit => character.is_numeric(),
        });
        is_in != self.is_negated
    }
}

fn is_word(character: Option<&char>) -> bool {
    character.is_some_and(|character| character.is_alphanumeric() || *character == '_')
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        let mut rest: Vec<char> = text.chars().rev().collect();
        let pattern = parse(&mut rest);
        assert!(rest.is_empty(), "a parenthesis too many in {text}");
        pattern
    }

    /// Whether the pattern matches anywhere in the line.
    pub(super) fn is_in(&self, line: &[char]) -> bool {
        (0..=line.len()).any(|at| self.fits(line, at, &mut |_| true))
    }

    /// Whether the pattern matches at `at` with an end that `next` accepts.
    fn fits(&self, line: &[char], at: usize, next: &mut dyn FnMut(usize) -> bool) -> bool {
        self.alternatives.iter().any(|sequence| fits(sequence, line, at, next))
    }
}

fn fits(sequence: &[Piece], line: &[char], at: usize, next: &mut dyn FnMut(usize) -> bool) -> bool {
    let Some((first, rest)) = sequence.split_first() else { return next(at) };
    fits_one(first, line, at, &mut |end| fits(rest, line, end, next))
}

fn fits_one(piece: &Piece, line: &[char], at: usize, next: &mut dyn FnMut(usize) -> bool) -> bool {
    match piece {
        Piece::Begin => at == 0 && next(at),
        Piece::WordBoundary => {
            let before = at.checked_sub(1).and_then(|before| line.get(before));
            is_word(before) != is_word(line.get(at)) && next(at)
        }
        Piece::One(set) => line.get(at).is_some_and(|character| set.has(*character)) && next(at + 1),
        Piece::Group(pattern) => pattern.fits(line, at, next),
        Piece::NotFollowedBy(pattern) => !pattern.fits(line, at, &mut |_| true) && next(at),
        Piece::Repeated(piece, least, most) => repeated(piece, *least, *most, line, at, next),
    }
}

fn repeated(
    piece: &Piece,
    least: usize,
    most: usize,
    line: &[char],
    at: usize,
    next: &mut dyn FnMut(usize) -> bool,
) -> bool {
    // Try one more repetition first. A repetition must not be empty, because empty repetitions would never
    // end.
    let once_more = most > 0
        && fits_one(piece, line, at, &mut |end| {
            end > at && repeated(piece, least.saturating_sub(1), most - 1, line, end, next)
        });
    once_more || (least == 0 && next(at))
}

/// Parses alternatives up to a closing parenthesis or the end of the text. `rest` has the text backwards.
fn parse(rest: &mut Vec<char>) -> Pattern {
    let mut alternatives = vec![Vec::new()];
    while let Some(character) = rest.pop_if(|character| *character != ')') {
        if character == '|' {
            alternatives.push(Vec::new());
            continue;
        }
        let piece = parse_piece(character, rest);
        let bounds = match rest.last() {
            Some('?') => Some((0, 1)),
            Some('*') => Some((0, usize::MAX)),
            Some('+') => Some((1, usize::MAX)),
            _ => None,
        };
        let piece = match bounds {
            Some((least, most)) => {
                rest.pop();
                Piece::Repeated(Box::new(piece), least, most)
            }
            None => piece,
        };
        alternatives.last_mut().expect("there is one").push(piece);
    }
    Pattern { alternatives }
}

fn parse_piece(character: char, rest: &mut Vec<char>) -> Piece {
    let one = |item| Piece::One(Set { is_negated: false, items: vec![item] });
    match character {
        '^' => Piece::Begin,
        '.' => Piece::One(Set { is_negated: true, items: Vec::new() }),
        '\\' => match rest.pop().expect("something is escaped") {
            'b' => Piece::WordBoundary,
            escaped => one(escaped_item(escaped)),
        },
        '[' => {
            let is_negated = rest.pop_if(|character| *character == '^').is_some();
            let mut items = Vec::new();
            while let Some(first) = rest.pop_if(|character| *character != ']') {
                if first == '\\' {
                    items.push(escaped_item(rest.pop().expect("something is escaped")));
                } else if rest.last() == Some(&'-') {
                    rest.pop();
                    items.push(Item::Range(first, rest.pop().expect("a range has an end")));
                } else {
                    items.push(Item::Range(first, first));
                }
            }
            rest.pop().expect("a set ends");
            Piece::One(Set { is_negated, items })
        }
        '(' => {
            let is_marked = rest.pop_if(|character| *character == '?').is_some();
            let kind = if is_marked { rest.pop() } else { None };
            let pattern = parse(rest);
            rest.pop().expect("a group ends");
            if kind == Some('!') { Piece::NotFollowedBy(pattern) } else { Piece::Group(pattern) }
        }
        character => one(Item::Range(character, character)),
    }
}

fn escaped_item(character: char) -> Item {
    match character {
        's' => Item::Space,
        'd' => Item::Digit,
        character => Item::Range(character, character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect(pattern: &str, fits: &[&str], fits_not: &[&str]) {
        let compiled = Pattern::new(pattern);
        let is_in = |line: &str| compiled.is_in(&line.chars().collect::<Vec<_>>());
        for line in fits {
            assert!(is_in(line), "{pattern} in {line}");
        }
        for line in fits_not {
            assert!(!is_in(line), "{pattern} in {line}");
        }
    }

    #[test]
    fn patterns_fit_as_they_do_elsewhere() {
        expect("a(?:b|cd)+e", &["xabcdbe"], &["ae", "abc"]);
        expect(r"^(?:So|Of)\b(?! course)", &["Of it"], &["Of course", "Often", "x Of it"]);
        expect(r"\d[\d.]*(?:\s*(?:ns|s))? for \d", &["8.5 ns for 9", "8for 8 for 1"], &["8 nm for 9"]);
        expect(
            r"in\s+what\s+(?!is\b.*\?)[a-z]+\b",
            &["in what it does", "in  what is."],
            &["in what is it?"],
        );
        expect("[^.?]x", &["ax"], &[".x", "x"]);
    }
}
