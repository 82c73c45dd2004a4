//! The pool's locks. Waiting for a lock allocates no memory, so a free works even if the heap is exhausted.
//! (With `parking_lot`, a thread's first wait allocates a queue entry.)

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A lock that a panic of its holder does not poison. After a panic of the holder, `validate` can check
/// whether the pool's data is consistent.
#[derive(Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(protected: T) -> Self {
        Self(Mutex::new(protected))
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock if no thread has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
