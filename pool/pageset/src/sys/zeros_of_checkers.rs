//! Tables of default entries on the heap, for model checkers, whose atomics cannot be made from zeros.

use std::io;
use std::ptr::NonNull;

/// A table whose entries have their default value at first.
///
/// # Invariants
/// The pointer leads to a leaked box, which only this value has.
pub(crate) struct Zeros<T>(NonNull<[T]>);

// SAFETY: it owns the entries as a box does.
unsafe impl<T: Send> Send for Zeros<T> {}
// SAFETY: as for Send.
unsafe impl<T: Sync> Sync for Zeros<T> {}

impl<T: Default> Zeros<T> {
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let table: Box<[T]> = (0..len).map(|_| T::default()).collect();
        // INVARIANT: leaked here.
        Ok(Self(NonNull::from(Box::leak(table))))
    }
}

impl<T> Zeros<T> {
    /// The entries, for a value that moves together with this table.
    ///
    /// # Safety
    /// The entries are not used once the table is dropped, and the table itself is not read as long as they
    /// are used.
    pub(crate) unsafe fn lend(&mut self) -> &'static mut [T] {
        // SAFETY: by the invariant they are ours; the caller answers for the lifetime.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for Zeros<T> {
    fn drop(&mut self) {
        // SAFETY: from a leaked box, which only this value has.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
