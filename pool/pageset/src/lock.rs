//! The pool's locks. A thread that waits for one needs no memory, so a free may wait where the heap is used up.
//! (With `parking_lot`, a thread that waits for the first time asks the heap for its place in a queue.)

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A lock. One whose holder panicked is a lock as before: what it protects is checked by `validate`, not here.
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
