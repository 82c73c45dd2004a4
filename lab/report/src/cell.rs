//! One value of a table: a count, a measurement, a text, or nothing.

use serde::{Serialize, Serializer};

/// One value of a table.
///
/// Make measurements with [`Cell::real`], which turns infinite values and NaN into [`Cell::Absent`].
/// Therefore exporters get only finite values.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// An exact number of things.
    Count(u64),
    /// A measurement or a ratio. Machine formats write the value in full, and tables show the value with
    /// `digits` decimal places.
    Real {
        /// The value, which is finite.
        value: f64,
        /// Decimal places in tables.
        digits: u8,
    },
    /// A name or a remark.
    Text(String),
    /// The value was not measured, does not apply, or is not defined, such as a ratio to zero.
    Absent,
}

impl Cell {
    /// Makes a measurement, shown with `digits` decimal places in tables. The cell is absent if `value` is
    /// `None`, infinite or NaN.
    #[must_use]
    pub fn real(value: impl Into<Option<f64>>, digits: u8) -> Self {
        match value.into() {
            Some(value) if value.is_finite() => Self::Real { value, digits },
            _ => Self::Absent,
        }
    }

    /// Makes a cell with `part` in percent of `whole`, with one decimal place. The cell is absent if `whole`
    /// is 0.
    #[must_use]
    pub fn percent(part: u64, whole: u64) -> Self {
        Self::ratio(part, whole, 100.0, 1)
    }

    /// Makes a cell with `part / whole`, with `digits` decimal places. The cell is absent if `whole` is 0.
    #[must_use]
    pub fn quotient(part: u64, whole: u64, digits: u8) -> Self {
        Self::ratio(part, whole, 1.0, digits)
    }

    fn ratio(part: u64, whole: u64, scale: f64, digits: u8) -> Self {
        if whole == 0 { Self::Absent } else { Self::real(part as f64 / whole as f64 * scale, digits) }
    }

    /// The value as a real number. `None` if the cell has no number.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match *self {
            Self::Count(value) => Some(value as f64),
            Self::Real { value, .. } => Some(value),
            Self::Text(_) | Self::Absent => None,
        }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Count(value)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

/// Serializes numbers as numbers, text as a string, and absent values as null.
impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(value) => serializer.serialize_u64(*value),
            Self::Real { value, .. } => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Absent => serializer.serialize_unit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_number_is_absent() {
        assert_eq!(Cell::real(f64::NAN, 1), Cell::Absent);
        assert_eq!(Cell::real(f64::INFINITY, 1), Cell::Absent);
        assert_eq!(Cell::percent(1, 0), Cell::Absent);
        assert_eq!(Cell::quotient(0, 0, 2), Cell::Absent);
    }

    #[test]
    fn ratios_divide_after_widening() {
        assert_eq!(Cell::percent(1, 8).number(), Some(12.5));
        assert_eq!(Cell::quotient(u64::MAX, u64::MAX, 0).number(), Some(1.0));
    }

    #[test]
    fn options_become_absent() {
        assert_eq!(Cell::from(None::<u64>), Cell::Absent);
        assert_eq!(Cell::from(Some("x")), Cell::Text("x".to_owned()));
    }
}
