//! Tables on the program's heap. If the heap is exhausted, these functions return an error instead of ending
//! the program.

use zerocopy::FromZeros;

/// The heap does not have this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeapExhausted {
    pub(crate) bytes: usize,
}

impl HeapExhausted {
    fn of<T>(len: usize) -> Self {
        Self { bytes: len.saturating_mul(size_of::<T>()) }
    }
}

/// A table of zeros. For a large table, the system provides only the pages that are used.
pub(crate) fn zeroed<T: FromZeros>(len: usize) -> Result<Box<[T]>, HeapExhausted> {
    <[T]>::new_box_zeroed_with_elems(len).map_err(|_| HeapExhausted::of::<T>(len))
}

/// Makes a table whose entries `make` returns, one call for each entry.
pub(crate) fn made<T>(len: usize, make: impl FnMut() -> T) -> Result<Box<[T]>, HeapExhausted> {
    let mut table = with_room(len)?;
    table.extend(std::iter::repeat_with(make).take(len));
    // The list's length equals its capacity, so the conversion does not move the entries.
    Ok(table.into_boxed_slice())
}

/// An empty list with room for `len` entries.
pub(crate) fn with_room<T>(len: usize) -> Result<Vec<T>, HeapExhausted> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| HeapExhausted::of::<T>(len))?;
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "miri has no limit of its own, and ends the program")]
    fn a_table_that_no_heap_can_hold_is_an_error() {
        // An allocator accepts the last length as a valid request, and then fails. Miri would end the program
        // instead.
        let lens = [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8];
        for len in &lens[..if cfg!(miri) { 2 } else { 3 }] {
            let len = *len;
            assert_eq!(zeroed::<u64>(len).unwrap_err(), HeapExhausted::of::<u64>(len));
            assert_eq!(made(len, || 1_u64).unwrap_err(), HeapExhausted::of::<u64>(len));
            assert_eq!(with_room::<u64>(len).unwrap_err().bytes, len.saturating_mul(8));
        }
        assert_eq!((&*zeroed::<u16>(3).unwrap(), &*made(2, || 7).unwrap()), (&[0; 3][..], &[7; 2][..]));
    }
}
