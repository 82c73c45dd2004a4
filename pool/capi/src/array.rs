//! Checks and converts arrays and strings of a caller.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::slice;

use crate::failure::Failure;

const BAD_ARRAY: Failure = Failure::new(libc::EINVAL, "an array cannot be NULL, nor larger than memory");

fn is_possible<T>(start: *const T, count: usize) -> bool {
    !start.is_null() && start.is_aligned() && count <= isize::MAX as usize / size_of::<T>()
}

/// Converts an array that the library writes to. An array without elements may be NULL.
pub(crate) fn output<'a, T>(start: *mut T, count: usize) -> Result<&'a mut [MaybeUninit<T>], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    if !is_possible(start, count) {
        return Err(BAD_ARRAY);
    }
    // SAFETY: the array is not null, aligned and not too large. By the header, the caller promises the
    // array's length.
    Ok(unsafe { slice::from_raw_parts_mut(start.cast(), count) })
}

/// Converts an array that the library reads. An array without elements may be NULL.
pub(crate) fn input<'a, T>(start: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if !is_possible(start, count) {
        return Err(BAD_ARRAY);
    }
    // SAFETY: the array is not null, aligned and not too large. By the header, the caller promises the
    // array's length.
    Ok(unsafe { slice::from_raw_parts(start, count) })
}

/// Converts a string.
pub(crate) fn string<'a>(start: *const c_char) -> Result<&'a CStr, Failure> {
    if start.is_null() {
        return Err(Failure::new(libc::EINVAL, "a name cannot be NULL"));
    }
    // SAFETY: the pointer is not null. By the header, the caller promises that the pointer is to a string.
    Ok(unsafe { CStr::from_ptr(start) })
}
