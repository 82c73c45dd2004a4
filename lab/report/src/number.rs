//! Writes numbers in the form that people read.
//!
//! Counts up to 999 999 999 are written with all digits and without separators. Two policies often differ
//! only in the fifth digit, and a reader must be able to paste a value into another tool. A count from 10^9
//! on is rounded to three decimals of `G`, `T`, `P` or `E` (powers of 1000). If a table has a rounded count,
//! [`SHORT_FORM_NOTE`] is printed below the table. Machine formats never round.

use crate::Cell;

/// The text of an absent value.
pub(crate) const ABSENT: &str = "-";

/// The note below a table that has a rounded count.
pub(crate) const SHORT_FORM_NOTE: &str =
    "G, T, P, E = 10^9, 10^12, 10^15, 10^18, rounded; the JSON and CSV formats have every digit.";

/// Smallest count that is rounded.
const SHORT_FROM: u64 = 1_000_000_000;

/// Returns the cell's text in the form that people read.
pub(crate) fn text_of(cell: &Cell) -> String {
    match cell {
        Cell::Count(value) => count(*value),
        Cell::Real { value, digits } => real(*value, *digits),
        Cell::Text(text) => text.clone(),
        Cell::Absent => ABSENT.to_owned(),
    }
}

/// Whether [`text_of`] rounds this cell to a short form.
pub(crate) fn is_short(cell: &Cell) -> bool {
    matches!(cell, Cell::Count(value) if *value >= SHORT_FROM)
}

/// Writes a count with all digits, or rounded from 10^9 on.
pub(crate) fn count(value: u64) -> String {
    let mut divisor = SHORT_FROM;
    if value < divisor {
        return value.to_string();
    }
    for suffix in ["G", "T", "P"] {
        let milli = thousandths(value, divisor);
        if milli < 1_000_000 {
            return short(milli, suffix);
        }
        divisor *= 1000;
    }
    short(thousandths(value, divisor), "E")
}

/// Returns `value / divisor` in thousandths, rounded to the nearest integer.
fn thousandths(value: u64, divisor: u64) -> u64 {
    let milli = divisor / 1000;
    value / milli + u64::from(value % milli >= milli / 2)
}

fn short(milli: u64, suffix: &str) -> String {
    format!("{}.{:03}{suffix}", milli / 1000, milli % 1000)
}

/// Writes a real number with `digits` decimal places. Negative zero is written as zero.
fn real(value: f64, digits: u8) -> String {
    let text = format!("{value:.*}", usize::from(digits));
    match text.strip_prefix('-') {
        Some(positive) if positive.bytes().all(|byte| matches!(byte, b'0' | b'.')) => positive.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: u64, expected: &str) {
        assert_eq!(count(value), expected);
    }

    #[test]
    fn counts_keep_their_digits_below_a_thousand_million() {
        check(0, "0");
        check(63, "63");
        check(999_999_999, "999999999");
    }

    #[test]
    fn larger_counts_are_rounded_to_a_short_form() {
        check(1_000_000_000, "1.000G");
        check(1_234_499_999, "1.234G");
        check(1_234_500_000, "1.235G");
        check(999_999_499_999, "999.999G");
        check(999_999_500_000, "1.000T");
        check(1_000_000_000_000_000, "1.000P");
        check(u64::MAX, "18.447E");
    }

    #[test]
    fn reals_round_and_never_show_a_negative_zero() {
        assert_eq!(real(99.95, 1), "100.0");
        assert_eq!(real(-0.04, 1), "0.0");
        assert_eq!(real(-0.0, 0), "0");
        assert_eq!(real(-0.06, 1), "-0.1");
    }
}
