//! The arrays under a try-lock per CPU: where sequences cannot be restarted.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{Batch, Class, CpuArrays, Entry};

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

    /// Puts a batch under one hold of the lock, as far as there is room; the rest stays in it.
    pub(crate) fn try_push_many(&self, class: Class, batch: &mut Batch) {
        let pushed = self.try_with(|arrays| {
            let stack = arrays.stack(class);
            batch.as_slice().iter().take_while(|entry| stack.push(**entry)).count()
        });
        batch.forget_front(pushed.unwrap_or(0));
    }

    /// Takes up to `limit` blocks under one hold of the lock; not counted as pops.
    pub(crate) fn try_pop_many(&self, class: Class, limit: usize, batch: &mut Batch) {
        self.try_with(|arrays| arrays.stack(class).take_last(limit, |entry| batch.push_front(entry)));
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
