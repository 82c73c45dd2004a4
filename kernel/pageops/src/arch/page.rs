//! A page that this crate writes to and never reads.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::NonNull;

/// Memory that this crate writes to and never reads. Make a page from `&mut [u8]`, from `&mut
/// [MaybeUninit<u8>]`, or from an address.
///
/// # Invariants
///
/// During `'p`, the bytes of the page are valid to write, and nothing else refers to these bytes.
#[derive(Debug)]
pub struct Page<'p> {
    start: NonNull<u8>,
    bytes: usize,
    memory: PhantomData<&'p mut [MaybeUninit<u8>]>,
}

impl<'p> Page<'p> {
    /// Makes a page from an address. Use this function in operating-system kernels, because their pages are
    /// not slices.
    ///
    /// # Safety
    ///
    /// During `'p`, `bytes` bytes at `start` are valid to write. During `'p`, no other code reads or writes
    /// these bytes, or has a reference to these bytes.
    #[must_use]
    pub const unsafe fn from_raw(start: NonNull<u8>, bytes: usize) -> Self {
        // INVARIANT: the caller promises the invariant of `Page`.
        Self { start, bytes, memory: PhantomData }
    }

    /// The address of the first byte.
    #[must_use]
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Borrows a part of the page.
    ///
    /// # Panics
    ///
    /// Panics if the part is not inside the page.
    #[must_use]
    pub fn part(&mut self, part: Range<usize>) -> Page<'_> {
        assert!(
            part.start <= part.end && part.end <= self.bytes,
            "{part:?} is not a part of a page of {} bytes",
            self.bytes
        );
        // SAFETY: the part begins inside the page or at its end.
        let start = unsafe { self.start.add(part.start) };
        // INVARIANT: the part lies inside the page, and `self` is borrowed as long as the part is.
        Page { start, bytes: part.end - part.start, memory: PhantomData }
    }
}

impl<'p> From<&'p mut [MaybeUninit<u8>]> for Page<'p> {
    fn from(memory: &'p mut [MaybeUninit<u8>]) -> Self {
        let bytes = memory.len();
        // INVARIANT: the slice is borrowed for `'p`.
        Self { start: NonNull::from(memory).cast(), bytes, memory: PhantomData }
    }
}

impl<'p> From<&'p mut [u8]> for Page<'p> {
    fn from(memory: &'p mut [u8]) -> Self {
        let bytes = memory.len();
        // INVARIANT: the slice is borrowed for `'p`. The crate only writes bytes, so the slice stays
        // initialised.
        Self { start: NonNull::from(memory).cast(), bytes, memory: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_inside() {
        let mut memory = [0_u8; 10];
        let start = memory.as_ptr().addr();
        let mut page = Page::from(&mut memory[..]);
        let part = page.part(3..10);
        assert_eq!((part.start().addr().get(), part.bytes()), (start + 3, 7));
        assert_eq!(page.part(10..10).bytes(), 0);
    }

    #[test]
    #[should_panic(expected = "9..11 is not a part of a page of 10 bytes")]
    fn parts_outside_are_refused() {
        let _ = Page::from(&mut [0_u8; 10][..]).part(9..11);
    }
}
