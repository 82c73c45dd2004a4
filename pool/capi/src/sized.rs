//! Reads and writes structs that may get new fields in later versions of the library. A program keeps the
//! struct size that the program was built with.
//!
//! Each struct begins with its size in bytes and its version. Fields that only the program knows must be
//! zero. Fields that only the library knows get their defaults. The system call clone3 treats unknown fields
//! of its struct by the same rule.

use std::{fmt, ptr, slice};

use crate::failure::{Failure, NULL_OUTPUT};

/// The version of all structs so far.
pub(crate) const VERSION: u32 = 1;

/// The most bytes of a struct in any version.
const BYTES_MAX: usize = 4096;
/// The bytes of the size and the version, which are in every version of a struct.
const HEAD_BYTES: usize = size_of::<usize>() + size_of::<u32>();

/// A struct of the header.
///
/// # Safety
/// The type is `repr(C)`, and begins with a `usize` (its size) and a `u32` (its version). Any bytes are a
/// valid value of the type.
pub(crate) unsafe trait Grows: Copy {
    /// The struct's name in the header.
    const NAME: &'static str;

    /// The struct's size and version.
    fn head(&mut self) -> (&mut usize, &mut u32);
}

/// Reads a program's struct. A field that the program does not know keeps the value that the field has in
/// `value`.
pub(crate) fn read<T: Grows>(at: *const T, mut value: T) -> Result<T, Failure> {
    let bad =
        |errno, what: fmt::Arguments<'_>| Err(Failure::with_text(errno, format_args!("{}: {what}", T::NAME)));
    if at.is_null() || !at.is_aligned() {
        return bad(libc::EINVAL, format_args!("not the address of such a struct"));
    }
    // SAFETY: the pointer is not null and is aligned. The header makes the caller promise that the struct
    // begins with a size.
    let bytes = unsafe { at.cast::<usize>().read() };
    if bytes < HEAD_BYTES {
        return bad(libc::EINVAL, format_args!("struct_bytes is {bytes}; use pageset_config_init"));
    }
    if bytes > BYTES_MAX {
        return bad(libc::E2BIG, format_args!("struct_bytes is {bytes}, and {BYTES_MAX} at most"));
    }
    let known = bytes.min(size_of::<T>());
    // SAFETY: the caller promises `bytes` bytes, and both structs have at least `known` bytes. Any bytes are
    // a valid value of the struct.
    unsafe { ptr::copy_nonoverlapping(at.cast::<u8>(), (&raw mut value).cast::<u8>(), known) };
    // SAFETY: the range begins after the copied bytes, and ends with the bytes that the caller promises.
    let unknown = unsafe { slice::from_raw_parts(at.cast::<u8>().wrapping_add(known), bytes - known) };
    if unknown.iter().any(|byte| *byte != 0) {
        return bad(
            libc::E2BIG,
            format_args!("a field is set that this version of the library does not know"),
        );
    }
    let version = *value.head().1;
    if version != VERSION {
        return bad(
            libc::EINVAL,
            format_args!("version is {version}, not {VERSION}; use pageset_config_init"),
        );
    }
    Ok(value)
}

/// Fills a struct that the program will change and pass back. Fields that the library does not know become
/// zero.
pub(crate) fn fill<T: Grows>(at: *mut T, bytes: usize, mut value: T) -> Result<(), Failure> {
    if bytes > BYTES_MAX {
        let name = T::NAME;
        let what = format_args!("{name}: struct_bytes is {bytes}, and {BYTES_MAX} at most");
        return Err(Failure::with_text(libc::E2BIG, what));
    }
    let known = check(at, bytes)?;
    *value.head().0 = bytes;
    copy(at, known, &value);
    // SAFETY: the range begins after the copied bytes, and ends with the bytes that the caller promises.
    unsafe { ptr::write_bytes(at.cast::<u8>().wrapping_add(known), 0, bytes - known) };
    Ok(())
}

/// Writes the part of a struct that the program knows, and stores the part's size in `struct_bytes`.
pub(crate) fn write<T: Grows>(at: *mut T, bytes: usize, mut value: T) -> Result<(), Failure> {
    let known = check(at, bytes)?;
    *value.head().0 = known;
    copy(at, known, &value);
    Ok(())
}

/// The number of bytes of a struct that both the program and the library know.
fn check<T: Grows>(at: *mut T, bytes: usize) -> Result<usize, Failure> {
    if at.is_null() || !at.is_aligned() {
        return Err(NULL_OUTPUT);
    }
    if bytes < HEAD_BYTES {
        let name = T::NAME;
        let what = format_args!("{name}: struct_bytes is {bytes}, not the size of the struct");
        return Err(Failure::with_text(libc::EINVAL, what));
    }
    Ok(bytes.min(size_of::<T>()))
}

fn copy<T: Grows>(at: *mut T, known: usize, value: &T) {
    // SAFETY: `check` has checked the address. The caller promises `known` bytes at this address, and `value`
    // has at least `known` bytes.
    unsafe { ptr::copy_nonoverlapping(ptr::from_ref(value).cast::<u8>(), at.cast::<u8>(), known) };
}
