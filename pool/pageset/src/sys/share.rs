//! A value on the heap with counted references. (The standard library's `Arc` ends the program if the heap is
//! exhausted.)

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

use crate::heap::{self, HeapExhausted};

/// A counted reference to a value. Dropping the last reference drops the value.
///
/// # Invariants
/// The pointer comes from a box of one entry. The box lives as long as there are references, and its count of
/// owners equals the number of references.
pub(crate) struct Shared<T>(NonNull<Owned<T>>);

struct Owned<T> {
    owners: AtomicUsize,
    value: T,
}

// SAFETY: the same conditions as for `Arc`: references on several threads read the value, and the thread of
// the last reference drops the value.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as for Send.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Moves a value to the heap, and makes the first reference to the value.
    pub(crate) fn new(value: T) -> Result<Self, HeapExhausted> {
        let mut list = heap::with_room(1)?;
        list.push(Owned { owners: AtomicUsize::new(1), value });
        // INVARIANT: the new box has one entry and one owner.
        Ok(Self(NonNull::from(Box::leak(list.into_boxed_slice())).cast()))
    }

    /// Whether both references refer to the same value.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Drops a reference that belonged to a thread of the parent. A child of `fork` does not have the
    /// parent's thread, so no other code would drop the reference.
    ///
    /// # Safety
    /// A lost reference exists, and no other code will drop the lost reference.
    pub(crate) unsafe fn drop_lost(&self) {
        // SAFETY: the caller promises that a lost reference exists, and that no other code drops it. The copy
        // from `ptr::read` takes the place of the lost reference.
        drop(unsafe { ptr::read(self) });
    }

    fn owned(&self) -> &Owned<T> {
        // SAFETY: by the invariant of `Shared`, the box lives as long as this reference.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        // INVARIANT: the count grows by one for the new reference. `Relaxed` suffices, because passing the
        // reference to another thread synchronises.
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
        // Race: other threads drop their references before this thread drops the last reference. After this
        // fence, this thread sees the other threads' writes to the value.
        fence(Acquire);
        // SAFETY: the pointer comes from a leaked box of one entry, and by the invariant this was the last
        // reference to the box.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(self.0.as_ptr(), 1)) });
    }
}

/// A value that contains locks.
pub(crate) trait Locks {
    /// The guards of the locks. The locks are held until this value is dropped.
    type Held<'a>
    where
        Self: 'a;

    /// Takes all locks.
    fn hold(&self) -> Self::Held<'_>;
}

/// All locks of a shared value. The locks are held until this value is dropped.
pub(crate) struct Locked<T: Locks + 'static> {
    // The field `_held` is dropped first, so the value outlives the guards.
    _held: T::Held<'static>,
    share: Shared<T>,
}

impl<T: Locks> Locked<T> {
    pub(crate) fn new(share: Shared<T>) -> Self {
        // SAFETY: `share` keeps the value at its address, and is dropped after everything that borrows from
        // `value`. `hold` is generic over the lifetime, so `hold` cannot store the reference elsewhere.
        let value: &'static T = unsafe { &*ptr::from_ref::<T>(&share) };
        Self { _held: value.hold(), share }
    }

    /// The value.
    pub(crate) fn value(&self) -> &T {
        &self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how many times a value of this type was dropped.
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

    #[test]
    fn a_lost_share_does_not_keep_the_value() {
        let ends = AtomicUsize::new(0);
        let first = Shared::new(Ends(&ends)).unwrap();
        std::mem::forget(first.clone());
        // SAFETY: the reference that was forgotten above is lost, and is dropped here once.
        unsafe { first.drop_lost() };
        drop(first);
        assert_eq!(ends.load(Relaxed), 1);
    }

    struct Door(crate::lock::Lock<u32>);

    impl Locks for Door {
        type Held<'a> = std::sync::MutexGuard<'a, u32>;

        fn hold(&self) -> Self::Held<'_> {
            self.0.lock()
        }
    }

    #[test]
    fn a_locked_value_lives_until_it_is_unlocked() {
        let first = Shared::new(Door(crate::lock::Lock::new(7))).unwrap();
        let locked = Locked::new(first.clone());
        assert!((*first).0.try_lock().is_none());
        drop(locked);
        assert_eq!((*first).0.try_lock().as_deref(), Some(&7));
        let last = Locked::new(first);
        drop(last);
    }
}
