//! A fraction from 0 to 1. The fraction is stored as two integers, because kernels divide integers.

/// A fraction from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    numerator: u16,
    denominator: u16,
}

impl Part {
    /// The fraction 0.
    pub const NONE: Self = Self { numerator: 0, denominator: 1 };
    /// The fraction 1.
    pub const ALL: Self = Self { numerator: 1, denominator: 1 };

    /// The fraction `numerator / denominator`.
    ///
    /// # Panics
    ///
    /// Panics if the fraction exceeds 1, or the denominator is 0.
    #[must_use]
    pub const fn new(numerator: u16, denominator: u16) -> Self {
        match Self::checked(numerator, denominator) {
            Some(part) => part,
            None => panic!("a part is between 0 and 1"),
        }
    }

    /// The fraction `numerator / denominator`. `None` if the fraction exceeds 1 or the denominator is 0.
    #[must_use]
    pub const fn checked(numerator: u16, denominator: u16) -> Option<Self> {
        if denominator == 0 || numerator > denominator { None } else { Some(Self { numerator, denominator }) }
    }

    /// Numerator and denominator.
    #[must_use]
    pub const fn parts(self) -> (u16, u16) {
        (self.numerator, self.denominator)
    }

    /// One minus this fraction.
    #[must_use]
    pub const fn rest(self) -> Self {
        Self { numerator: self.denominator - self.numerator, ..self }
    }

    /// The number `pages` multiplied by this fraction, rounded down.
    #[must_use]
    #[inline]
    pub const fn of(self, pages: i32) -> i32 {
        (pages as i64 * self.numerator as i64 / self.denominator as i64) as i32
    }
}

/// The form of a fraction in a policy file: a decimal number, or a text such as `"1/3"`.
#[cfg(feature = "serde")]
mod serde_form {
    use core::fmt;

    use serde::de::{Error, Unexpected, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Part;

    /// Decimal numbers have up to four digits after the point.
    const DIGITS: u16 = 10_000;

    impl Serialize for Part {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if DIGITS.is_multiple_of(self.denominator) {
                serializer.serialize_f64(f64::from(self.numerator) / f64::from(self.denominator))
            } else {
                serializer.collect_str(&format_args!("{}/{}", self.numerator, self.denominator))
            }
        }
    }

    impl<'de> Deserialize<'de> for Part {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Written)
        }
    }

    struct Written;

    impl Visitor<'_> for Written {
        type Value = Part;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a part: a number from 0 to 1 with up to four digits, or \"1/3\"")
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<Part, E> {
            match value {
                0 => Ok(Part::NONE),
                1 => Ok(Part::ALL),
                _ => Err(E::invalid_value(Unexpected::Signed(value), &self)),
            }
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<Part, E> {
            self.visit_i64(i64::try_from(value).unwrap_or(i64::MAX))
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<Part, E> {
            let all = f64::from(DIGITS);
            // The cast saturates. Converting the result back shows whether a digit is lost.
            let counted = (value * all + 0.5) as u16;
            let is_written = (f64::from(counted) / all - value).abs() < 1e-9;
            match lowest(counted, DIGITS) {
                Some(part) if is_written => Ok(part),
                _ => Err(E::invalid_value(Unexpected::Float(value), &self)),
            }
        }

        fn visit_str<E: Error>(self, value: &str) -> Result<Part, E> {
            let part = value.split_once('/').and_then(|(numerator, denominator)| {
                lowest(numerator.trim().parse().ok()?, denominator.trim().parse().ok()?)
            });
            part.ok_or_else(|| E::invalid_value(Unexpected::Str(value), &self))
        }
    }

    /// Reduces a fraction to lowest terms, so that each fraction is written in one way.
    fn lowest(numerator: u16, denominator: u16) -> Option<Part> {
        let (mut common, mut rest) = (denominator, numerator);
        while rest > 0 {
            (common, rest) = (rest, common % rest);
        }
        let common = common.max(1);
        Part::checked(numerator / common, denominator / common)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Decay;

    /// Tests that a part of a number equals the result of the shift or division that kernels use.
    #[test]
    fn parts_are_the_integers_of_kernels() {
        for high in (0..20_000).chain([i32::MAX / 4, i32::MAX / 4 - 1]) {
            assert_eq!(high - Decay::EIGHTH.of(high, 0), high - (high >> 3));
            assert_eq!(high - Decay::FIFTH.of(high, 0), (i64::from(high) * 4 / 5) as i32);
            assert_eq!(Decay::UNUSED_UP_TO_FIFTH.of(high, 100), (high / 5).min(100));
            assert_eq!(Part::new(1, 2).of(high), high / 2);
            assert_eq!((Part::ALL.of(high), Part::NONE.of(high)), (high, 0));
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        assert_eq!((Part::checked(3, 2), Part::checked(1, 0)), (None, None));
    }
}
