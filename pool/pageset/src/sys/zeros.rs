//! Tables of zeros in mappings of their own. The system provides memory only for the pages that are used. The
//! mappings use `Backing::Plain`, because a huge page would make unused parts of a table resident.

use std::alloc::Layout;
use std::io;
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ops::{Deref, DerefMut};
use std::slice;

use zerocopy::FromZeros;

use super::{Mapping, PAGE_BYTES};
use crate::Backing;

/// A table whose entries are all zero at first.
///
/// # Invariants
/// The mapping has room for `len` entries, at most `isize::MAX` bytes, and only this value uses it.
pub(crate) struct Zeros<T> {
    mapping: Mapping,
    len: usize,
    entries: PhantomData<T>,
}

impl<T: FromZeros> Zeros<T> {
    /// A table of `len` entries.
    ///
    /// # Errors
    /// The system's error if there is no address space.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= PAGE_BYTES && !needs_drop::<T>()) };
        let bytes = Layout::array::<T>(len).ok().map(|layout| layout.size().max(1));
        let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(PAGE_BYTES));
        let mapping = Mapping::new(bytes.ok_or(io::ErrorKind::OutOfMemory)?, Backing::Plain);
        let mapping = mapping.map_err(|error| error.source)?;
        Ok(Self { mapping, len, entries: PhantomData })
    }
}

impl<T> Zeros<T> {
    /// Lends the entries to another field of the struct that owns this table.
    ///
    /// # Safety
    /// The caller does not use the entries after the table is dropped. While the entries are lent, nothing
    /// reads the table itself.
    pub(crate) unsafe fn lend(&mut self) -> &'static mut [T] {
        // SAFETY: as for `deref_mut`. The caller promises that the lifetime is right.
        unsafe { slice::from_raw_parts_mut(self.mapping.start().as_ptr().cast(), self.len) }
    }
}

impl<T: FromZeros> Deref for Zeros<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: by the invariant, only this value uses the mapping. The mapping starts at a page boundary,
        // and has room for `len` entries. Entries of zeros are valid, and only valid values were written to
        // entries since.
        unsafe { slice::from_raw_parts(self.mapping.start().as_ptr().cast(), self.len) }
    }
}

impl<T: FromZeros> DerefMut for Zeros<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.mapping.start().as_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_zero_and_keeps_what_is_written() {
        for len in [0, 1, 1000] {
            let mut table = Zeros::<u64>::new(len).expect("a few pages");
            assert!(table.iter().all(|entry| *entry == 0) && table.len() == len);
            table.iter_mut().zip(1..).for_each(|(entry, number)| *entry = number);
            assert!(table.iter().copied().eq(1..=len as u64));
        }
    }

    #[test]
    fn a_table_that_no_address_space_can_hold_is_an_error() {
        for len in [usize::MAX, usize::MAX / 8, usize::MAX / 16] {
            assert!(Zeros::<u64>::new(len).is_err(), "{len}");
        }
    }
}
