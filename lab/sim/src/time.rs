//! Virtual time: instants and spans with a resolution of one picosecond.
//!
//! A single step of an allocator costs a few nanoseconds or less, so rounding times to whole nanoseconds
//! would be too coarse. A `u64` can count picoseconds for 213 days.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// Picoseconds in one nanosecond.
const PS: u64 = 1000;

/// A point in virtual time; a simulation begins at [`Time::ZERO`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub(crate) u64);

/// A length of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub(crate) u64);

impl Time {
    /// The beginning of the simulation.
    pub const ZERO: Self = Self(0);

    /// Whole nanoseconds since the beginning.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0 / PS
    }

    /// Time from `earlier` to `self`. The result is zero if `earlier` is not earlier than `self`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of zero picoseconds.
    pub const ZERO: Self = Self(0);

    /// A span of whole nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(PS))
    }

    /// A span of whole microseconds.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self::from_ns(us.saturating_mul(1000))
    }

    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self::from_us(ms.saturating_mul(1000))
    }

    /// A span of nanoseconds with a fraction. The span is zero if the number is negative or undefined.
    #[must_use]
    pub fn from_ns_f64(ns: f64) -> Self {
        Self((ns * PS as f64).round() as u64)
    }

    /// Whole nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0 / PS
    }

    /// Nanoseconds with their fraction.
    #[must_use]
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / PS as f64
    }

    /// Seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.as_ns_f64() / 1e9
    }

    /// Returns the span multiplied by `factor`.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
}

impl Add<Span> for Time {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl std::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.as_ns())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.as_ns_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_instead_of_wrapping() {
        let late = Time(u64::MAX - 1);
        assert_eq!((late + Span::from_ms(u64::MAX)).0, u64::MAX);
        assert_eq!(Time::ZERO.since(late), Span::ZERO);
        assert_eq!(Span::from_ns_f64(-3.0), Span::ZERO);
        assert_eq!(Span::from_ns_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_ns_f64(1.5).0, 1500);
    }
}
