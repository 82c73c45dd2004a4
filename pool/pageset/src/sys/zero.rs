//! Clears pages that no user has.

use std::ops::Range;

use super::Mapping;

/// Clears the pages of a range, counted from the mapping's start. The stores bypass the CPU's cache, because
/// no thread is waiting for the cleared pages. The caller must own all these pages.
pub(crate) fn clear(mapping: &Mapping, bytes: Range<usize>) {
    assert!(bytes.start <= bytes.end && bytes.end <= mapping.bytes());
    let start = mapping.start().as_ptr().wrapping_add(bytes.start);
    // SAFETY: the range lies inside the mapping, whose bytes are initialised, and the caller owns its pages,
    // so that no other reference to them exists.
    let pages = unsafe { std::slice::from_raw_parts_mut(start, bytes.len()) };
    let outcome = pageset_pageops::clear(pages, None);
    outcome.expect("ranges begin and end with base pages");
}
