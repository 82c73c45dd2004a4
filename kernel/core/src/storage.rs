//! The memory of the allocator's tables: the caller lends the memory for `'a`, or the heap provides the
//! memory.

use core::ops::{Deref, DerefMut};

#[cfg(feature = "alloc")]
use crate::error::ConfigError;

/// A fixed table of `T`, in the caller's memory or (feature `alloc`) on the heap.
///
/// A kernel lends statics, or memory from the kernel's first zone. A program or a simulator uses the heap.
#[derive(Debug)]
#[non_exhaustive]
pub enum Storage<'a, T> {
    /// The caller lends the memory.
    Borrowed(&'a mut [T]),
    /// The heap provides the memory once, when the allocator is built.
    #[cfg(feature = "alloc")]
    Owned(alloc::boxed::Box<[T]>),
}

impl<T> Storage<'_, T> {
    /// Allocates `len` entries on the heap, each made by `make`.
    ///
    /// # Errors
    /// [`ConfigError::OutOfMemory`] if the heap has too little memory.
    #[cfg(feature = "alloc")]
    pub fn owned(len: usize, make: impl FnMut() -> T) -> Result<Self, ConfigError> {
        let mut entries = alloc::vec::Vec::new();
        let refused = |_| ConfigError::OutOfMemory(len.saturating_mul(size_of::<T>()));
        entries.try_reserve_exact(len).map_err(refused)?;
        entries.extend(core::iter::repeat_with(make).take(len));
        // The list's length equals its capacity, so the conversion to a box copies nothing.
        Ok(Self::Owned(entries.into_boxed_slice()))
    }
}

impl<T> Deref for Storage<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Borrowed(table) => table,
            #[cfg(feature = "alloc")]
            Self::Owned(table) => table,
        }
    }
}

impl<T> DerefMut for Storage<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Borrowed(table) => table,
            #[cfg(feature = "alloc")]
            Self::Owned(table) => table,
        }
    }
}

impl<'a, T> From<&'a mut [T]> for Storage<'a, T> {
    fn from(table: &'a mut [T]) -> Self {
        Self::Borrowed(table)
    }
}

impl<'a, T, const LEN: usize> From<&'a mut [T; LEN]> for Storage<'a, T> {
    fn from(table: &'a mut [T; LEN]) -> Self {
        Self::Borrowed(table)
    }
}
