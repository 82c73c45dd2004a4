//! Reads and writes the first word of a page that no user has. The first word of each page links the page to
//! a list, so the list needs no other memory.

use std::ptr::NonNull;

use super::{Mapping, PAGE_SHIFT};

/// Writes a word to the beginning of a page. The caller must own the page.
pub(crate) fn set(mapping: &Mapping, frame: u32, word: u64) {
    // SAFETY: the word lies inside the mapping and is aligned to a page. The caller owns the page, so no
    // other thread reads the word.
    unsafe { at(mapping, frame).write(word) };
}

/// Reads the word that [`set`] wrote. The caller must have owned the page since the call of [`set`].
pub(crate) fn get(mapping: &Mapping, frame: u32) -> u64 {
    // SAFETY: as for `set`, and `set` has initialised the word.
    unsafe { at(mapping, frame).read() }
}

fn at(mapping: &Mapping, frame: u32) -> NonNull<u64> {
    let offset = (frame as usize) << PAGE_SHIFT;
    assert!(offset < mapping.bytes(), "page {frame} is not in the pool");
    // SAFETY: the offset lies inside the mapping.
    unsafe { mapping.start().byte_add(offset) }.cast()
}
