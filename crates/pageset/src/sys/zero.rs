//! Clearing pages that the pool owns for the moment.

use std::ops::Range;

use super::Mapping;

/// Clears the bytes of a range, relative to the mapping. The caller owns all pages of it.
pub(crate) fn clear(mapping: &Mapping, bytes: Range<usize>) {
    assert!(bytes.start <= bytes.end && bytes.end <= mapping.bytes());
    let start = mapping.start().as_ptr().wrapping_add(bytes.start);
    // SAFETY: the range lies inside the mapping, and the caller owns its pages, so that no reference to them exists.
    unsafe { start.write_bytes(0, bytes.len()) };
}
