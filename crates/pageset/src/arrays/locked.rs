//! The arrays under a try-lock per CPU: where sequences cannot be restarted.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{Class, CpuArrays, Entry};

impl CpuArrays {
    /// Takes a block. `None` if there is none, or somebody else is at these arrays.
    #[inline]
    pub(crate) fn try_pop(&self, class: Class) -> Option<Entry> {
        self.try_with(|arrays| arrays.stack(class).pop()).flatten()
    }

    /// Puts a block. `false` if there is no room, or somebody else is at these arrays.
    #[inline]
    pub(crate) fn try_push(&self, class: Class, entry: Entry) -> bool {
        self.try_with(|arrays| arrays.stack(class).push(entry)).unwrap_or(false)
    }

    /// Puts blocks under one hold of the lock, as long as there is room. The one that had none is returned.
    pub(crate) fn try_push_all(
        &self,
        class: Class,
        entries: &mut impl Iterator<Item = Entry>,
    ) -> Option<Entry> {
        self.try_with(|arrays| {
            let stack = arrays.stack(class);
            entries.find(|entry| !stack.push(*entry))
        })
        .flatten()
    }

    /// Takes up to `limit` blocks under one hold of the lock.
    pub(crate) fn try_pop_many(&self, class: Class, limit: usize, take: impl FnMut(Entry)) {
        self.try_with(|arrays| {
            let stack = arrays.stack(class);
            std::iter::from_fn(|| stack.pop()).take(limit).for_each(take);
        });
    }

    /// Waits for these arrays, and takes everything out.
    pub(crate) fn empty_locked(&self, mut take: impl FnMut(Class, Entry)) {
        while !self.try_lock() {
            std::thread::yield_now();
        }
        for class in Class::ALL {
            self.stack(class).empty(|entry| take(class, entry));
        }
        self.lock.store(0, Release);
    }

    #[inline]
    fn try_with<T>(&self, work: impl FnOnce(&Self) -> T) -> Option<T> {
        if !self.try_lock() {
            return None;
        }
        let outcome = work(self);
        self.lock.store(0, Release);
        Some(outcome)
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.lock.load(Relaxed) == 0 && self.lock.swap(1, Acquire) == 0
    }
}
