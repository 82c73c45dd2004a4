//! A shared value on the heap. (The standard library's `Arc` ends the program if the heap is exhausted.)

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

use crate::heap::{self, HeapExhausted};

/// A share of a value. Dropping the last share drops the value.
///
/// # Invariants
/// The pointer leads to a box of one entry. The box lives as long as it has owners, and its count of owners
/// is the number of shares.
pub(crate) struct Shared<T>(NonNull<Owned<T>>);

struct Owned<T> {
    owners: AtomicUsize,
    value: T,
}

// SAFETY: as for `Arc`: shares on several threads look at the value, and the last one drops it wherever it
// is.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as for Send.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The first share of a value.
    pub(crate) fn new(value: T) -> Result<Self, HeapExhausted> {
        let mut list = heap::with_room(1)?;
        list.push(Owned { owners: AtomicUsize::new(1), value });
        // INVARIANT: a box of one entry, with one owner.
        Ok(Self(NonNull::from(Box::leak(list.into_boxed_slice())).cast()))
    }

    fn owned(&self) -> &Owned<T> {
        // SAFETY: by the invariant the box lives as long as this share.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        // INVARIANT: one more owner. Another thread sees the new count when it gets the share, at the latest.
        self.owned().owners.fetch_add(1, Relaxed);
        Self(self.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.owned().value
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        if self.owned().owners.fetch_sub(1, Release) > 1 {
            return;
        }
        // Other threads dropped their shares before. This thread sees those threads' writes to the value from
        // here on.
        fence(Acquire);
        // SAFETY: from a leaked box of one entry, and by the invariant this was its last share.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(self.0.as_ptr(), 1)) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts its drops.
    struct Ends<'a>(&'a AtomicUsize);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_value_ends_once_with_its_last_share() {
        let ends = AtomicUsize::new(0);
        let first = Shared::new(Ends(&ends)).unwrap();
        let second = first.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || drop(second));
            scope.spawn(|| drop(first.clone()));
        });
        assert_eq!((first.owned().owners.load(Relaxed), ends.load(Relaxed)), (1, 0));
        drop(first);
        assert_eq!(ends.load(Relaxed), 1);
    }
}
