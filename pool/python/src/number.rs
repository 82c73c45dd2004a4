//! Converts arguments that are whole numbers.

use std::fmt::Display;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::bad_number;

/// A whole number of at least 0. If the number does not fit, the conversion raises `ValueError`. PyO3's own
/// conversion would raise `OverflowError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole<T>(pub(crate) T);

impl<'py, T: TryFrom<u64> + Display + Bounded> FromPyObject<'_, 'py> for Whole<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let number = match object.extract::<u64>() {
            Ok(number) => T::try_from(number).ok(),
            Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => return Err(error),
            Err(_) => None,
        };
        number.map(Self).ok_or_else(|| {
            bad_number(format!("{} is not a number from 0 to {}", object.to_owned(), T::LARGEST))
        })
    }
}

/// A type with a largest number.
pub(crate) trait Bounded {
    /// The type's largest number.
    const LARGEST: Self;
}

macro_rules! bounded {
    ($($number:ty),*) => { $(impl Bounded for $number { const LARGEST: Self = Self::MAX; })* };
}

bounded!(u16, u32, u64, usize);
