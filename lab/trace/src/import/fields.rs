//! Finds the `key=value` words in an event's text, and parses the numbers in them.

/// The `key=value` words of a text, in order. Words that are not `key=value` are skipped.
pub(super) struct Fields<'text> {
    rest: &'text [u8],
}

impl<'text> Fields<'text> {
    pub(super) const fn new(text: &'text [u8]) -> Self {
        Self { rest: text }
    }

    /// The value of the first field called `key`.
    pub(super) fn find(text: &'text [u8], key: &[u8]) -> Option<&'text [u8]> {
        Self::new(text).find_map(|(name, value)| (name == key).then_some(value))
    }
}

/// Whether a character ends a word. The words in `(flags=SPIN)` end at brackets, and the words in `pid=1,
/// comm=x` end at commas and spaces.
const fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b',' | b'(' | b')')
}

impl<'text> Iterator for Fields<'text> {
    type Item = (&'text [u8], &'text [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.rest.iter().position(|byte| !is_separator(*byte))?;
            let rest = &self.rest[start..];
            let mut equals = None;
            let mut end = rest.len();
            for (at, byte) in rest.iter().enumerate() {
                if *byte == b'=' && equals.is_none() {
                    equals = Some(at);
                    // The value `(null)` begins with a character that ends words elsewhere.
                    if rest[at + 1..].starts_with(b"(") {
                        end = rest[at..]
                            .iter()
                            .position(|byte| *byte == b')')
                            .map_or(rest.len(), |n| at + n + 1);
                        break;
                    }
                } else if is_separator(*byte) {
                    end = at;
                    break;
                }
            }
            self.rest = &rest[end..];
            if let Some(at) = equals {
                return Some((&rest[..at], &rest[at + 1..end]));
            }
        }
    }
}

/// Parses a decimal number, or a hexadecimal number after `0x`.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    match text {
        [b'0', b'x' | b'X', hex @ ..] => hexadecimal(hex),
        _ => decimal(text),
    }
}

/// Parses a number of decimal digits.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses a number of hexadecimal digits.
pub(super) fn hexadecimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return None,
        };
        Some(value << 4 | u64::from(digit))
    })
}

/// A number that may be negative.
pub(super) fn signed(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', rest @ ..] => i64::try_from(decimal(rest)?).ok().map(i64::wrapping_neg),
        // `trace-cmd report -R` prints a negative number in a long field as a large hexadecimal number.
        _ => number(text).map(|value| value as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        Fields::new(text.as_bytes())
            .map(|(key, value)| {
                (String::from_utf8_lossy(key).into_owned(), String::from_utf8_lossy(value).into_owned())
            })
            .collect()
    }

    #[test]
    fn words_without_equals_are_passed_over() {
        assert_eq!(
            pairs("00f9 (flags=SPIN|READ) x page=(null) pfn=0x1,order=2 ="),
            [("flags", "SPIN|READ"), ("page", "(null)"), ("pfn", "0x1"), ("order", "2"), ("", "")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
        assert_eq!(pairs("a=b=c"), [("a".to_owned(), "b=c".to_owned())]);
        assert_eq!(pairs("page=("), [("page".to_owned(), "(".to_owned())]);
        assert!(pairs("").is_empty());
    }

    #[test]
    fn numbers_are_bounded() {
        assert_eq!(number(b"0x121c27"), Some(0x12_1c27));
        assert_eq!(number(b"1186855"), Some(1_186_855));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for wrong in ["", "0x", "18446744073709551616", "0x11112222333344445", "12a", "+1", " 1", "-1"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(signed(b"-1"), Some(-1));
        assert_eq!(signed(b"0xffffffffffffffff"), Some(-1));
        assert_eq!(signed(b"--1"), None);
    }
}
