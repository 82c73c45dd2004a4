//! Arrays and strings of a caller.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::slice;

use crate::failure::Failure;

const BAD_ARRAY: Failure = Failure::new(libc::EINVAL, "an array cannot be NULL, nor larger than memory");

fn is_possible<T>(start: *const T, count: usize) -> bool {
    !start.is_null() && start.is_aligned() && count <= isize::MAX as usize / size_of::<T>()
}

/// An array to write to. It may be NULL if it has no elements.
pub(crate) fn output<'a, T>(start: *mut T, count: usize) -> Result<&'a mut [MaybeUninit<T>], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    if !is_possible(start, count) {
        return Err(BAD_ARRAY);
    }
    // SAFETY: not null, aligned, not too large; the header makes the caller promise that it is as long as it
    // says.
    Ok(unsafe { slice::from_raw_parts_mut(start.cast(), count) })
}

/// An array to read. It may be NULL if it has no elements.
pub(crate) fn input<'a, T>(start: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if !is_possible(start, count) {
        return Err(BAD_ARRAY);
    }
    // SAFETY: not null, aligned, not too large; the header makes the caller promise that it is as long as it
    // says.
    Ok(unsafe { slice::from_raw_parts(start, count) })
}

/// A string.
pub(crate) fn string<'a>(start: *const c_char) -> Result<&'a CStr, Failure> {
    if start.is_null() {
        return Err(Failure::new(libc::EINVAL, "a name cannot be NULL"));
    }
    // SAFETY: not null; the header makes the caller promise that a string is there.
    Ok(unsafe { CStr::from_ptr(start) })
}
