//! Tables of default entries on the heap. Model checkers use tables on the heap, because the atomics of a
//! model checker cannot be made from zeros.

use std::io;
use std::ptr::NonNull;

/// A table whose entries have their default value at first.
///
/// # Invariants
/// The pointer comes from a leaked box, and no other value has it.
pub(crate) struct Zeros<T>(NonNull<[T]>);

// SAFETY: the type owns its entries as a box does.
unsafe impl<T: Send> Send for Zeros<T> {}
// SAFETY: as for Send.
unsafe impl<T: Sync> Sync for Zeros<T> {}

impl<T: Default> Zeros<T> {
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let table: Box<[T]> = (0..len).map(|_| T::default()).collect();
        // INVARIANT: the box was leaked just now, so no other value has its pointer.
        Ok(Self(NonNull::from(Box::leak(table))))
    }
}

impl<T> Zeros<T> {
    /// Lends the entries to another field of the struct that owns this table.
    ///
    /// # Safety
    /// The caller does not use the entries after the table is dropped. While the entries are lent, nothing
    /// reads the table itself.
    pub(crate) unsafe fn lend(&mut self) -> &'static mut [T] {
        // SAFETY: by the invariant, only this value has the entries. The caller promises that the lifetime is
        // right.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for Zeros<T> {
    fn drop(&mut self) {
        // SAFETY: by the invariant, the pointer comes from a leaked box, and no other value has it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
