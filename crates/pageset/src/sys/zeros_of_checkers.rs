//! Tables of what is empty at first, from the heap: atomics of model checkers are more than their zeros.

use std::io;
use std::ops::{Deref, DerefMut};

/// A table whose entries are the default at first.
pub(crate) struct Zeros<T>(Box<[T]>);

impl<T: Default> Zeros<T> {
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        Ok(Self((0..len).map(|_| T::default()).collect()))
    }
}

impl<T> Deref for Zeros<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Zeros<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
